import type { Entry } from '@windlass/shared/wire/agent.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aHandMade } from './hand-made.ts'
import type { FakeCoordinator, Told } from './fake-coordinator.ts'

/** Waits once, and says what it was woken with. */
export const WAITS = `
  say('before')
  const completions = await waitFor(1)
  say('woken with ' + completions.map((each) => each.n).join())
  done(input)`

export const kindsOf = (told: Told) => told.entries.map((entry) => (entry[0] === 'e' ? entry[2] : entry[0]))

export function entryOf<K extends Entry[0]>(
  told: Told,
  kind: K,
): Extract<Entry, readonly [K, ...unknown[]]> | undefined {
  return told.entries.findLast((entry): entry is Extract<Entry, readonly [K, ...unknown[]]> => entry[0] === kind)
}

/** Its last word is that it only waits. */
export const isParked = (told: Told) => told.entries.at(-1)?.[0] === 'park'

export async function aParked(fake: FakeCoordinator, body = WAITS, more: Parameters<FakeCoordinator['offer']>[1] = {}) {
  const told = fake.offer(await aHandMade(body), more)
  await until('it is parked', () => kindsOf(told).includes('park'))
  return told
}

export function wake(fake: FakeCoordinator, told: Told, ...numbers: number[]): void {
  const completions = numbers.map((n) => ({ n, state: 'done' as const, result: 'null' }))
  fake.send({ t: 'wake', runs: [{ run: told.offer.run, epoch: told.offer.epoch, completions }] })
}
