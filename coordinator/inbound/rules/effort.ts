/** What comparing one delivery with all that could take it may cost: those who post choose what is compared. */
export interface Effort {
  /** Of so many characters. Throws TooMuchToCompare when that is more than is left. */
  spend(characters: number): void
  /** Whether a piece is spent since this was last so. Others have their turn before the next one. */
  endsPiece(): boolean
}

/** Yields at the end of each piece of its effort. */
export type Pieces<T> = Generator<undefined, T, undefined>

/** Some 50 ms: a thousand filters that each compare eight texts of a thousand characters. */
const MOST_CHARACTERS = 8_000_000
/** Some 0.5 ms. Nearly every delivery is compared in less. */
const CHARACTERS_PER_PIECE = 100_000

/** A look at a value takes as long as comparing so many characters. */
export const LOOK = 8
/** A workflow, or a field of a filter, takes as long before anything is compared. */
export const FIELD = 128

export class TooMuchToCompare extends Error {}

export function createEffort(left = MOST_CHARACTERS): Effort {
  let piece = 0
  return {
    spend(characters) {
      left -= characters
      piece += characters
      if (left < 0) throw new TooMuchToCompare()
    },
    endsPiece() {
      if (piece < CHARACTERS_PER_PIECE) return false
      piece = 0
      return true
    },
  }
}
