/** Proxies in front of us close what is silent for 30 s. The longest wait that a tool takes is 25 s. */
export const CALL_MS = 28_000

export interface Deadlines {
  /** For the messages of a request: those that have not come to their end are refused one by one. */
  messagesMs: number
  /** For the request, whatever the library has left without an answer. */
  requestMs: number
}

/** Behind that of a call, whose answer is the better one for a model. */
export const DEADLINES: Deadlines = { messagesMs: CALL_MS + 500, requestMs: CALL_MS + 1000 }
