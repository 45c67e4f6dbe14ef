/** What the agent's process ends with; scripts and service managers rely on it. 0 is kept for a stop that somebody asked for. */
export const EXIT = {
  stopped: 0,
  /** A bug, or something on the host that we did not foresee; the log has the stack. */
  internal: 70,
  /** Another agent works in the state folder. */
  inUse: 73,
  /** The coordinator no longer speaks the protocol of this version: upgrade the agent. */
  upgrade: 76,
  /** The registration token was refused. */
  refused: 77,
  /** A setting is missing, unknown or malformed. */
  config: 78,
  /** The runner was revoked: this identity is worth nothing any more. */
  revoked: 79,
  /** Another agent lives on with this identity: the state folder is a copy, or a backup. */
  replaced: 80,
} as const

export const EXIT_TEXT = `Exit codes: 0 stopped because somebody asked for it, drained or not · 70 internal error, see the log ·
73 another agent works in the state folder · 76 too old for the coordinator · 77 the registration token was refused ·
78 a setting is wrong or missing · 79 the runner was revoked · 80 another agent goes on with this identity`

/** Starting again will not change these; a service manager that tried would only fill its log. */
export const FINAL_CODES: readonly number[] = [EXIT.upgrade, EXIT.refused, EXIT.config, EXIT.revoked, EXIT.replaced]

/** An end that the person who installed the agent has to do something about. The message says what. */
export class AgentRefusal extends Error {
  readonly exitCode: number

  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'AgentRefusal'
    this.exitCode = exitCode
  }
}
