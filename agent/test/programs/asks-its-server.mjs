// Its own process asks a file system of FUSE that another one of its processes serves, in a session of its own, and which
// never answers. The file is in a namespace of that process: it is looked for until it is mounted.
import { spawn } from 'node:child_process'
import { mkdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

export async function run({ command }) {
  const folder = path.resolve('mounted')
  mkdirSync(folder)
  const [file, ...args] = command.map((each) => (each === 'FOLDER' ? folder : each))
  const server = spawn(file, args, { detached: true, stdio: ['ignore', 'inherit', 'inherit'] })
  for (;;) {
    statSync(`/proc/${server.pid}/root${folder}/nothing`, { throwIfNoEntry: false })
    await pause(10)
  }
}
