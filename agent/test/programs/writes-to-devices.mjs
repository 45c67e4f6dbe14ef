import { spawnSync } from 'node:child_process'

/** As scripts of a shell do. Answers how each has ended. */
export async function run() {
  return ['stdout', 'stderr'].map((name) => {
    const script = `echo "to ${name}" > /dev/${name}`
    return spawnSync('sh', ['-c', script], { stdio: ['ignore', 'inherit', 'inherit'] }).status
  })
}
