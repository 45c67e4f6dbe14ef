import { appendFileSync, existsSync, writeFileSync } from 'node:fs'

/** Sells something under a number that counts on in the ledger, which nobody keeps but itself; away at the first time. */
export async function run({ ledger, what }: { ledger: string; what: string }): Promise<string> {
  const visited = `${ledger}.${what}`
  if (!existsSync(visited)) {
    writeFileSync(visited, '')
    throw new Error(`away for ${what}`)
  }
  appendFileSync(ledger, `${what}\n`)
  return `sold ${what}`
}
