import type { Offer } from '@windlass/shared/wire/agent.ts'
import type { Offers } from '@windlass/shared/wire/offers.ts'

/** Offers as an answer to a poll has them. */
export function inAnswer(offers: readonly Offer[]): Offers {
  return {
    offers: offers.map((offer) => ({ ...offer, variables: offer.run })),
    variableSets: Object.fromEntries(offers.map(({ run, variables }) => [run, variables])),
  }
}
