import type { Entry } from '@windlass/shared/wire/agent.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aHandMade } from './hand-made.ts'
import type { FakeCoordinator, FakePlacement } from './fake-coordinator.ts'

/** Waits once, and says what it was woken with. */
export const WAITS = `
  say('before')
  const completions = await waitFor(1)
  say('woken with ' + completions.map((each) => each.n).join())
  done(input)`

export const kindsOf = (placement: FakePlacement) =>
  placement.entries.map((entry) => (entry[0] === 'e' ? entry[2] : entry[0]))

export function entryOf<K extends Entry[0]>(
  placement: FakePlacement,
  kind: K,
): Extract<Entry, readonly [K, ...unknown[]]> | undefined {
  return placement.entries.findLast((entry): entry is Extract<Entry, readonly [K, ...unknown[]]> => entry[0] === kind)
}

/** Its last word is that it only waits. */
export const isParked = (placement: FakePlacement) => placement.entries.at(-1)?.[0] === 'park'

export async function aParked(fake: FakeCoordinator, body = WAITS, more: Parameters<FakeCoordinator['offer']>[1] = {}) {
  const placement = fake.offer(await aHandMade(body), more)
  await until('it is parked', () => kindsOf(placement).includes('park'))
  return placement
}

export function wake(fake: FakeCoordinator, placement: FakePlacement, ...numbers: number[]): void {
  const completions = numbers.map((n) => ({ n, state: 'done' as const, result: 'null' }))
  fake.send({ t: 'wake', runs: [{ run: placement.offer.run, epoch: placement.offer.epoch, completions }] })
}
