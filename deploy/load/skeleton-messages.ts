/** First message to the skeleton's server. */
export interface Order {
  /** Folder of the database's socket. */
  host: string
  password: string
  /** Most runs that the agent has at the same time. */
  slots: number
}

/** Messages from the skeleton's server. */
export type SkeletonMessage = { what: 'ready'; port: number } | { what: 'open'; runs: number }

/** A run for the agent. Frames are lists of them. */
export interface Given {
  id: string
  input: string
}

/** A completed run from the agent. Frames are lists of them. */
export interface Done {
  id: string
  output: string
}
