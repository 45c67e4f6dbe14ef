/** What the agent's process ends with. 0 is kept for a stop that somebody asked for. */
export const EXIT = {
  stopped: 0,
  /** A bug, or something on the host that we did not foresee; the log has the stack. */
  internal: 70,
  /** Another agent works in the state folder. */
  inUse: 73,
  /** The coordinator no longer speaks the protocol of this version: upgrade the agent. */
  upgrade: 76,
  /** The registration token was refused, or another agent has taken over this identity. */
  refused: 77,
  /** A setting is missing, unknown or malformed. */
  config: 78,
} as const

/** An end that the person who installed the agent has to do something about. The message says what. */
export class AgentRefusal extends Error {
  readonly exitCode: number

  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'AgentRefusal'
    this.exitCode = exitCode
  }
}
