export interface Lender {
  /** Calls `act` within the cork; false: there is none now. */
  cork(act: () => void): boolean
  close(): void
}

export function openLender(): Lender
