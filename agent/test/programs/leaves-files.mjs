import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import os from 'node:os'

export function run() {
  const found = [...readdirSync('.'), ...readdirSync(os.tmpdir())]
  mkdirSync('deep/down', { recursive: true })
  writeFileSync('deep/down/notes.txt', 'mine')
  writeFileSync(`${os.tmpdir()}/scratch`, 'mine')
  return found
}
