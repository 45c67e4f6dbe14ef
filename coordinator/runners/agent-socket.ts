/** The server's end of an agent's WebSocket. */
export interface AgentSocket {
  send(text: string): void
  close(code: number, reason: string): void
  onMessage(listener: (text: string) => void): void
  onClose(listener: () => void): void
}
