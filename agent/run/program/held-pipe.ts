/** The program has kept its agent waiting over a pipe, and is ended. */
export class HeldPipe extends Error {
  override readonly name = 'HeldPipe'

  constructor(waitedMs: number) {
    super(
      `The program kept its agent waiting for ${(waitedMs / 1000).toFixed(1)} s: it held the lock of a pipe that is ` +
        'its stdout, stderr or descriptor 3 or 4, as a splice or sendfile from a socket into one does. ' +
        'Copy what is to be printed by read and write.',
    )
  }
}

/** The program has kept its agent waiting over another file or folder, and is ended. */
export class HeldFile extends Error {
  override readonly name = 'HeldFile'

  constructor(waitedMs: number) {
    super(
      `The program kept its agent waiting for ${(waitedMs / 1000).toFixed(1)} s: while somebody waited for a file ` +
        'system (FUSE) of the program, which did not answer, a file or folder was locked. ' +
        'Such a file system has to answer each request at once.',
    )
  }
}
