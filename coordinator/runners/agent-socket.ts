/** The server's end of an agent's WebSocket. */
export interface AgentSocket {
  send(text: string): void
  /** Bytes that the kernel has not taken yet. */
  buffered(): number
  close(code: number, reason: string): void
  onMessage(listener: (text: string) => void): void
  onClose(listener: () => void): void
}
