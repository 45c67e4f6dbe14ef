import { writeSync } from 'node:fs'

export function run() {
  writeSync(3, 'this is no frame, whatever it may look like to a reader of frames')
  return new Promise(() => setInterval(() => {}, 1000))
}
