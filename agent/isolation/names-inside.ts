import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'

/** The same for all: what is a user of its own outside need not be told inside. */
export const USER_INSIDE = 1000

export interface NameFiles {
  passwd: string
  group: string
}

/** Makes what programs in bubblewrap find as /etc/passwd and /etc/group, without the names of the host. */
export function writeNames(folder: string, uid = USER_INSIDE): NameFiles {
  const files = { passwd: path.join(folder, 'passwd'), group: path.join(folder, 'group') }
  mkdirSync(folder, { recursive: true })
  write(files.passwd, `root:x:0:0:root:/:/sbin/nologin\nrun:x:${uid}:${uid}:run:/:/sbin/nologin\n`)
  write(files.group, `root:x:0:\nrun:x:${uid}:\n`)
  return files
}

/** For a user whose number is the same inside. */
export function namesOf(folder: string, uid: number): NameFiles {
  const own = path.join(folder, `names-${uid}`)
  const files = { passwd: path.join(own, 'passwd'), group: path.join(own, 'group') }
  return Object.values(files).every((file) => existsSync(file)) ? files : writeNames(own, uid)
}

function write(file: string, text: string): void {
  writeFileSync(file, text)
  chmodSync(file, 0o644)
}
