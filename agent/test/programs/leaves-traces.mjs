import { execFileSync } from 'node:child_process'
import fs from 'node:fs'

/** Answers what an earlier run has left where everybody may leave something, and leaves the same. */
export function run({ name }) {
  const files = ['/tmp', '/var/tmp', '/dev/shm'].map((folder) => `${folder}/${name}`)
  const found = files.filter((file) => fs.existsSync(file))
  if (/^\s*\S+\s+\d+\s/m.test(mine())) found.push('shared memory')
  for (const file of files) {
    fs.mkdirSync(`${file}/more`, { recursive: true, mode: 0o777 })
    fs.writeFileSync(`${file}/more/secret`, 'secret')
  }
  execFileSync('ipcmk', ['-M', '100'])
  return { found, uid: process.getuid(), isThere: mine() !== '' }
}

function mine() {
  const lines = fs.readFileSync('/proc/sysvipc/shm', 'utf8').split('\n')
  return lines.filter((line) => line.trim().split(/\s+/)[7] === String(process.getuid())).join('\n')
}
