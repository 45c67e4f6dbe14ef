// Starts a process that holds the lock of a pipe to the agent: it splices from a socket that never has anything.
import { spawn } from 'node:child_process'
import { once } from 'node:events'

export async function run({ into, script }) {
  const stdio = ['ignore', 'inherit', 'inherit', into]
  const child = spawn('perl', ['-e', script, '3', '2'], { stdio })
  await once(child, 'exit')
  return 'nobody minded'
}
