// Asks a file system of FUSE that it serves itself, at descriptor 3, and mounted in the folder that it is given. Nobody
// answers: SIGKILL ends the thread that would, and leaves the other one waiting in the kernel. Without a folder it only
// serves, whoever asks.
import { readSync, statSync, writeSync } from 'node:fs'
import path from 'node:path'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'

const [folder] = process.argv.slice(2)
const FUSE = 3
/** Of a request: its number, at the eighth byte. Of an answer: its length, and the number at the same place. */
const [HEAD_BYTES, ID_AT] = [16, 8]
/** The answer to the first request: versions, and how much may be written at once. */
const INIT_BYTES = 64
const [MAJOR, MINOR, MOST_WRITTEN] = [
  [0, 7],
  [4, 31],
  [20, 4096],
]

if (folder === undefined || !isMainThread) serve()
else {
  const server = new Worker(new URL(import.meta.url))
  // Not before: a thread that begins may need this one.
  server.once('message', () => statSync(path.join(folder, 'nothing')))
}

/** Answers the first request, which is the kernel's own, takes the next one and keeps it. */
function serve() {
  const request = Buffer.alloc(1 << 18)
  readSync(FUSE, request)
  const answer = Buffer.alloc(HEAD_BYTES + INIT_BYTES)
  answer.writeUInt32LE(answer.length, 0)
  request.copy(answer, ID_AT, ID_AT, ID_AT + 8)
  for (const [at, value] of [MAJOR, MINOR, MOST_WRITTEN]) answer.writeUInt32LE(value, HEAD_BYTES + at)
  writeSync(FUSE, answer)
  parentPort?.postMessage('served')
  readSync(FUSE, request)
  writeSync(1, 'asked\n')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}
