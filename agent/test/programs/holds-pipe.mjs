// Starts processes that hold the lock of a pipe to the agent: they splice from a socket that seldom has anything.
import { spawn } from 'node:child_process'
import { once } from 'node:events'

export async function run({ into, script, pause = 2 }) {
  const stdio = ['ignore', 'inherit', 'inherit', into]
  const child = spawn('perl', ['-e', script, '3', String(pause)], { stdio })
  await once(child, 'exit')
  return 'nobody minded'
}
