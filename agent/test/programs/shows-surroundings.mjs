import { execFileSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import os from 'node:os'

export function run() {
  const environ = readFileSync('/proc/self/environ', 'utf8').split('\0').filter(Boolean)
  return {
    env: { ...process.env },
    initialNames: environ.map((entry) => entry.split('=')[0]).sort(),
    home: os.homedir(),
    temporary: os.tmpdir(),
    cwd: process.cwd(),
    mode: statSync(process.cwd()).mode & 0o777,
    childSees: execFileSync('/bin/sh', ['-c', 'echo $GREETING'], { encoding: 'utf8' }).trim(),
  }
}
