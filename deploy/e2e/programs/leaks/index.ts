import { execFileSync } from 'node:child_process'
import { writeSync } from 'node:fs'
import { log, phase, requestInput, RunFailedError, step, workflows } from 'windlass'

export interface Input {
  /** What it does when it has told everything: gives it back, throws it, has a child do so, or dies in the midst of a line. */
  ends: 'returning' | 'throwing' | 'calling' | 'dying'
  /** No secret: printed, and to be found wherever secrets are not. */
  note?: string
}

/** Tells its secrets in every way that there is to everybody who hears of a run. */
export async function run({ ends, note }: Input): Promise<unknown> {
  process.stdout.write(`${note}\n`)
  const secrets = Object.entries(process.env).filter(([name]) => name.startsWith('CANARY_'))
  for (const [name, value = ''] of secrets) tell(name, value)
  const all = Object.fromEntries(secrets)
  if (ends === 'throwing')
    throw Object.assign(new Error(`thrown ${JSON.stringify(all)}`), { code: all['CANARY_KEY'], all })
  if (ends === 'dying') die(JSON.stringify(all))
  const child = ends === 'calling' ? await failure(all) : null
  await step('fails', () => Promise.reject(new Error(`step ${JSON.stringify(all)}`))).catch(() => {})
  if (ends === 'calling') await ask(all)
  return {
    all,
    lines: Object.values(all).join('\n'),
    [`key ${all['CANARY_KEY']}`]: Buffer.from(all['CANARY_KEY'] ?? ''),
    child,
  }
}

function tell(name: string, value: string): void {
  console.log(name, value)
  console.error({ name, value, json: JSON.stringify({ value }) })
  for (const char of `${value}\n`) process.stdout.write(char)
  writeSync(1, `raw ${value.slice(0, 7)}`)
  writeSync(1, `${value.slice(7)}\n`)
  writeSync(2, `${value}\n`)
  execFileSync('/usr/bin/env', { stdio: ['ignore', 1, 2] })
  const bytes = Buffer.from(value)
  for (const encoding of ['hex', 'base64', 'base64url'] as const) console.log(encoding, bytes.toString(encoding))
  for (const user of ['a', 'ab', 'abc']) console.log('Basic', Buffer.from(`${user}:${value}@host`).toString('base64'))
  console.log(encodeURIComponent(value), new URLSearchParams({ value }).toString(), bytes, JSON.stringify(bytes))
  log(`log ${value}`, { name, value, [value]: [bytes.toString('hex').toUpperCase()] })
  log.warn(`${'x'.repeat(9_990)}${value}`)
  phase('tells', { value, nested: [{ [value]: JSON.stringify({ value }) }] })
}

/** A child knows the same secrets and throws them; what comes back is as everybody reads it. */
async function failure(all: object): Promise<unknown> {
  try {
    return await workflows.call(
      'leaks',
      { ends: 'throwing' },
      { tags: [String(Reflect.get(all, 'CANARY_KEY')).slice(0, 60)] },
    )
  } catch (error) {
    if (!(error instanceof RunFailedError)) throw error
    return { message: error.message, detail: error.detail }
  }
}

async function ask(all: Record<string, string | undefined>): Promise<void> {
  const description = `as in ${all['CANARY_KEY']}`
  const prompt = `Is ${all['CANARY_KEY']} right? ${all['CANARY_PEM']}`
  await requestInput({ prompt, schema: { type: 'boolean', description } })
}

function die(text: string): never {
  process.stdout.write(text)
  process.kill(process.pid, 'SIGKILL')
  throw new Error('unreachable')
}
