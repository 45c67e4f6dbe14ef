import { z } from 'zod'
import { Offer } from './agent.ts'

/**
 * The answer to a poll. What many runs are given alike is said once: `variables` of an offer names one of the sets.
 */
export const Offers = z.object({
  offers: z.array(Offer.extend({ variables: z.string() })),
  variableSets: z.record(z.string(), z.record(z.string(), z.string())),
})
export type Offers = z.output<typeof Offers>

/** Each offer with its variables. */
export function offersOf({ offers, variableSets }: Offers): Offer[] {
  return offers.map((offer) => ({ ...offer, variables: variableSets[offer.variables] ?? {} }))
}
