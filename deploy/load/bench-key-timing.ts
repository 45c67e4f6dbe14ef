import { crc32 } from 'node:zlib'
import { createCallers } from '@windlass/coordinator/accounts/callers.ts'
import { mintSecret } from '@windlass/shared/api-key.ts'
import { createLog } from '@windlass/shared/log.ts'
import type { BenchInstance } from './bench-instance.ts'
import { median } from './measure.ts'
import type { Report } from './row.ts'

const log = createLog({ process: 'bench' }, 'error')
const ROUNDS = 1000
const WARM_UP = 100

/** How long a look-up takes by how much of a guessed key is right: it must not show. All four pass the checksum. */
export async function benchKeyTiming({ db, apiKey }: BenchInstance, report: Report, repeats: number): Promise<void> {
  const random = apiKey.slice('wl_'.length, -6)
  const keys = {
    'right key': apiKey,
    'wrong last character': wellFormed(random.slice(0, -1) + other(random.at(-1))),
    'wrong first character': wellFormed(other(random[0]) + random.slice(1)),
    'nothing right': mintSecret('wl_'),
  }
  const names = Object.keys(keys) as (keyof typeof keys)[]
  const taken = new Map<string, number[]>(names.map((name) => [name, []]))
  for (let round = -WARM_UP; round < ROUNDS * repeats; round++) {
    // In turn, each beginning in its turn: whatever the machine does meanwhile falls upon all alike.
    for (let i = 0; i < names.length; i++) {
      const name = names[(i + round + WARM_UP) % names.length]!
      const tookUs = await lookUpUs({ db, log }, keys[name])
      if (round >= 0) taken.get(name)!.push(tookUs)
    }
  }
  const base = median(taken.get('nothing right')!)
  for (const name of names) {
    const value = median(taken.get(name)!)
    report({ name: `look-up, ${name}, p50`, value, unit: 'µs', ratio: { to: 'nothing right', value: value / base } })
  }
}

/** Nothing is remembered from one look-up to the next. */
async function lookUpUs(deps: Parameters<typeof createCallers>[0], key: string): Promise<number> {
  const { verify } = createCallers(deps)
  const since = performance.now()
  await verify(key).catch(() => undefined)
  return (performance.now() - since) * 1000
}

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

const other = (digit: string | undefined) => (digit === 'a' ? 'b' : 'a')

/** A key with these random characters: its checksum anybody can work out. */
function wellFormed(random: string): string {
  const body = `wl_${random}`
  let rest = crc32(body)
  let checksum = ''
  for (let position = 0; position < 6; position++) {
    checksum = DIGITS[rest % 62] + checksum
    rest = Math.floor(rest / 62)
  }
  return body + checksum
}
