import { spawn } from 'node:child_process'
import fs from 'node:fs'

/** Takes of one thing as much as there is. */
export async function run({ what, mb = 0 }) {
  if (what === 'disk') return await fillFiles(mb)
  if (what === 'file') return fillFile(mb)
  if (what === 'memory') return fillMemory(mb)
  if (what === 'open files') return openMany()
  if (what === 'processes') return await fork()
  if (what === 'nothing') return fs.readFileSync('/proc/self/oom_score_adj', 'utf8').trim()
  return null
}

async function fillFiles(mb) {
  for (let i = 0; i < mb; i++) fs.writeFileSync(`file-${i}`, Buffer.alloc(1024 * 1024, i))
  console.log('filled')
  await new Promise((resolve) => setTimeout(resolve, 60_000))
}

function fillFile(mb) {
  for (let i = 0; i < mb; i++) fs.appendFileSync('file', Buffer.alloc(1024 * 1024, i))
  return fs.statSync('file').size
}

function fillMemory(mb) {
  const held = []
  for (let i = 0; i < mb; i++) held.push(Buffer.alloc(1024 * 1024, i + 1))
  return held.length
}

function openMany() {
  const held = []
  try {
    for (let i = 0; i < 10_000; i++) held.push(fs.openSync('/dev/null'))
  } catch (error) {
    for (const fd of held) fs.closeSync(fd)
    return { count: held.length, code: error.code }
  }
  return { count: held.length }
}

/** As many as it gets, each in a session of its own, with no environment, and in a folder that says nothing. */
async function fork() {
  const script = 'cd /; while :; do setsid env -i sleep 300 2>/dev/null & done'
  spawn('sh', ['-c', script], { detached: true, stdio: 'ignore' }).unref()
  console.log('forking')
  await new Promise((resolve) => setTimeout(resolve, 60_000))
}
