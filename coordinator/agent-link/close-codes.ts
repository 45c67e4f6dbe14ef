/** WebSocket close codes that agents hear. RFC 6455's for an end that breaks the rules. */
export const POLICY = 1008
/** The IANA registry's: it may come again, by itself. */
export const TRY_AGAIN = 1013
/** Our own: another connection of the same runner has taken over. */
export const REPLACED = 4001
