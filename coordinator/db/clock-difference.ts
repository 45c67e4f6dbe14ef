/** The clocks of servers are put right by less, all the time. */
export const CORRECTION_MS = 1000
