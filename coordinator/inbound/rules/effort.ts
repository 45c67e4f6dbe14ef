/** What comparing one delivery with all that could take it may cost: those who post choose what is compared. */
export interface Effort {
  /** Of so many characters. Throws TooMuchToCompare when that is more than is left. */
  spend(characters: number): void
}

/** Some 50 ms: a thousand filters that each compare eight texts of a thousand characters. */
const MOST_CHARACTERS = 8_000_000

export class TooMuchToCompare extends Error {}

export function createEffort(left = MOST_CHARACTERS): Effort {
  return {
    spend(characters) {
      left -= characters
      if (left < 0) throw new TooMuchToCompare()
    },
  }
}
