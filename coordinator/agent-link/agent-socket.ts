/**
 * Who ended a connection. `agent`: the other side closed it, as a process that dies does with its sockets. `silence`: it answered
 * nothing any more, pings included. `coordinator`: we did.
 */
export type ClosedBy = 'agent' | 'silence' | 'coordinator'

/** The server's end of an agent's WebSocket. */
export interface AgentSocket {
  send(text: string): void
  close(code: number, reason: string): void
  /** Ends it at once, without a word, and lets go of all that came over it. */
  cut(): void
  onMessage(listener: (text: string) => void): void
  /** The listener gets the number of bytes that were sent and not yet taken, each time it changes; 0 at the end. */
  onUnread(listener: (bytes: number) => void): void
  /** Resolves when the agent has read all that was sent so far, or the connection has ended. */
  whenRead(): Promise<void>
  onClose(listener: (by: ClosedBy) => void): void
}
