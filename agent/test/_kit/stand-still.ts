/** Nothing else of this process has a turn meanwhile. `isOver` looks at files, or at a clock. */
export function standStillUntil(isOver: () => boolean): void {
  const nobody = new Int32Array(new SharedArrayBuffer(4))
  while (!isOver()) Atomics.wait(nobody, 0, 0, 5)
}
