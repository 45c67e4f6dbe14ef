import { appendFileSync, existsSync, writeFileSync } from 'node:fs'
import { requestInput, type RunContext, step, workflows } from 'windlass'

interface Ask {
  /** What was bought is noted there, outside of everything that Windlass keeps. */
  ledger: string
  /** How the first attempt ends, with all but the last order bought. */
  ends: 'dies' | 'throws'
}

/** Buys one thing after another, all by the same name, and tries again what has failed. */
export async function run({ ledger, ends }: Ask, context: RunContext) {
  const receipts: string[] = []
  for (const order of ['A', 'B', 'C']) {
    if (order === 'C' && context.attempt === 1) await end(ends)
    receipts.push(await insisting(() => step('pay', () => pay(ledger, order))))
    if (order !== 'A') continue
    receipts.push(await insisting(() => workflows.call<string>('sells', { ledger, what: 'parcel' })))
    receipts.push(await insisting(() => requestInput<string>({ prompt: 'Where to?', timeout: '3s' })))
  }
  return receipts
}

async function insisting<T>(act: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await act()
    } catch (error) {
      if (tries === 100) throw error
    }
  }
}

/** Refuses the first payment of A. */
function pay(ledger: string, order: string): string {
  const visited = `${ledger}.${order}`
  if (order === 'A' && !existsSync(visited)) {
    writeFileSync(visited, '')
    throw new Error('refused')
  }
  appendFileSync(ledger, `${order}\n`)
  return `paid ${order}`
}

async function end(how: Ask['ends']): Promise<void> {
  if (how === 'throws') throw new Error('a bug')
  process.kill(process.pid, 'SIGKILL')
  await new Promise(() => setInterval(() => {}, 1000))
}
