import type { AgentFrame } from '@windlass/shared/wire/agent.ts'
import { partOf } from '@windlass/shared/wire/parts.ts'
import type { WebSocket } from 'ws'

/** Hears the frames of an agent, and puts together what comes in parts, as the coordinator does. */
export function onFrames(ws: WebSocket, hear: (frame: AgentFrame) => void): void {
  const open = { entries: '', others: '' }
  ws.on('message', (data: Buffer) => {
    const message = data.toString()
    const part = partOf(message)
    if (!part) return hear(JSON.parse(message) as AgentFrame)
    const text = open[part.lane] + part.text
    open[part.lane] = part.isLast ? '' : text
    if (part.isLast) hear(JSON.parse(text) as AgentFrame)
  })
}
