import { spawn } from 'node:child_process'
import { readdirSync, readlinkSync } from 'node:fs'

const DESCRIPTORS = 'ls /proc/self/fd | tr "\\n" " "; echo; exec sleep 300'

export async function run({ inSession, bare, away, stays }) {
  const child = spawn('sh', ['-c', DESCRIPTORS], {
    detached: inSession,
    stdio: ['ignore', 'inherit', 'inherit'],
    ...(bare ? { env: {} } : {}),
    ...(away ? { cwd: '/' } : {}),
  })
  child.unref()
  // Its own shell has become `sleep` when its command line says so.
  while (!isSleeping(child.pid)) await new Promise((resolve) => setTimeout(resolve, 5))
  console.log(`pid ${child.pid}`)
  if (!stays) return child.pid
  console.log(`pid ${process.pid}`)
  await new Promise(() => setInterval(() => {}, 1000))
}

function isSleeping(pid) {
  return readdirSync('/proc').includes(String(pid)) && readlinkSync(`/proc/${pid}/exe`).includes('sleep')
}
