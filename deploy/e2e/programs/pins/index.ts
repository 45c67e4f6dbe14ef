import { createHash } from 'node:crypto'
import { log, requestInput, type RunContext } from 'windlass'

/** Says what it was given, asks whether to go on, and says it again; dies once in the midst of it where it is asked to. */
export async function run(input: { dies?: boolean } | null, context: RunContext) {
  log('given', { ...given(), attempt: context.attempt })
  console.log(`now ${process.env['PINNED_SECRET']}`)
  await requestInput({ prompt: `Go on with ${process.env['PINNED_SECRET']}?`, schema: { type: 'boolean' } })
  if (input?.dies && context.attempt === 1) process.kill(process.pid, 'SIGKILL')
  return { ...given(), attempt: context.attempt }
}

/** A hash is no form of a secret that would be hidden. */
function given() {
  const { PINNED_VARIABLE, PINNED_SECRET = '' } = process.env
  return { variable: PINNED_VARIABLE, secret: createHash('sha256').update(PINNED_SECRET).digest('hex') }
}
