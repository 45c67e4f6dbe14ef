/** Where the service is and as whom it is called. */
export interface Base {
  /** The address of the coordinator; a path in front of `/v1` is kept. */
  url: string
  apiKey?: string
  fetch?: typeof fetch
  /** Sent along with every request. */
  headers?: Record<string, string>
}

export interface CallOptions {
  signal?: AbortSignal
  /** How long to wait for the answer; 60 s by default. */
  deadlineMs?: number
  headers?: Record<string, string>
}
