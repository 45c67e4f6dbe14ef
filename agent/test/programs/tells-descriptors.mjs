import { fstatSync } from 'node:fs'

export function run() {
  const found = [1, 2, 3, 4].map((fd) => fstatSync(fd))
  return found.map((file) => (file.isFIFO() ? 'pipe' : file.isSocket() ? 'socket' : 'something else'))
}
