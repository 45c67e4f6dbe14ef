import { appendFileSync, existsSync, writeFileSync } from 'node:fs'
import { type RunContext, step } from 'windlass'

interface Ask {
  /** What was done is noted there, outside of everything that Windlass keeps. */
  ledger: string
  /** How the first attempt ends: amid the first step of its other way, behind all of it, or by its last step. */
  ends: 'dies amid' | 'dies behind' | 'throws behind'
}

/** Charges an order and ships it; the provider refuses the first charge, and the order is declined. */
export async function run({ ledger, ends }: Ask, context: RunContext) {
  const doing = (what: string) => step(what, () => act(ledger, what))
  const isFirst = context.attempt === 1
  let state: string
  try {
    await doing('charge')
    await doing('ship')
    state = 'shipped'
  } catch {
    await step('release', async () => {
      act(ledger, 'release')
      if (isFirst && ends === 'dies amid') await die()
    })
    await doing('tell')
    state = 'declined'
  }
  if (isFirst && ends !== 'throws behind') await die()
  await step('archive', () => {
    if (isFirst) throw new Error('the archive is away')
    act(ledger, 'archive')
  })
  return state
}

function act(ledger: string, what: string): void {
  const visited = `${ledger}.${what}`
  if (what === 'charge' && !existsSync(visited)) {
    writeFileSync(visited, '')
    throw new Error('refused')
  }
  appendFileSync(ledger, `${what}\n`)
}

async function die(): Promise<void> {
  process.kill(process.pid, 'SIGKILL')
  await new Promise(() => setInterval(() => {}, 1000))
}
