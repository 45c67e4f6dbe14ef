import { appendFileSync, existsSync, writeFileSync } from 'node:fs'
import { type RunContext, step } from 'windlass'

interface Ask {
  /** What was done is noted there, outside of everything that Windlass keeps. */
  ledger: string
  /** Where the first attempt dies: amid the first step of its other way, or behind all of it. */
  dies: 'amid' | 'behind'
}

/** Charges an order and ships it; the provider refuses the first charge, and the order is declined. */
export async function run({ ledger, dies }: Ask, context: RunContext) {
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
      if (isFirst && dies === 'amid') await die()
    })
    await doing('tell')
    state = 'declined'
  }
  if (isFirst) await die()
  await doing('archive')
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
