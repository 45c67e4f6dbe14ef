import { isForCallers } from '@windlass/shared/ops/op.ts'
import {
  BytesAnswer,
  FileAnswer,
  FilesAnswer,
  PiecesAnswer,
  SocketAnswer,
  SseAnswer,
  StatusAnswer,
} from '../api/call.ts'
import { outputText } from '../call/output.ts'
import type { Plan } from '../call/plan.ts'
import { type Outlet, sendBytes, sendJson, sendNothing } from './answer.ts'
import { sendFile } from './answer-file.ts'
import { sendFiles } from './answer-files.ts'
import { type Reading, sendPieces } from './answer-pieces.ts'
import { upgrade } from './socket.ts'
import { sendStream, type StreamOptions } from './sse.ts'

interface Exchange extends Outlet {
  readonly pipeline: StreamOptions & { strict: boolean }
}

type MayStay = () => Promise<boolean>

/** Sends what a handler has returned, in the form that its row has. `mayStay` never rejects. */
export function sendValue(exchange: Exchange, plan: Plan, value: unknown, mayStay: MayStay): Promise<void> | void {
  const { row } = plan
  const { strict, stallMs } = exchange.pipeline
  if (row.success === 204) return sendNothing(exchange)
  if (value instanceof FilesAnswer) {
    const around = outputText(plan, { ...value.head, files: [] }, strict)
    return sendFiles(exchange, { around, files: value.files }, readingOf(exchange, plan, mayStay))
  }
  if (value instanceof BytesAnswer) return sendBytes(exchange, value)
  if (row.wire === undefined) {
    const answer: StatusAnswer<unknown> = value instanceof StatusAnswer ? value : new StatusAnswer(row.success, value)
    const text = outputText(plan, answer.value, strict)
    return sendJson(exchange, answer.status, text, row.credentials.includes('run'))
  }
  if (value instanceof PiecesAnswer)
    return sendPieces(exchange, value, { ...readingOf(exchange, plan, mayStay), ranges: row.ranges })
  if (value instanceof FileAnswer) return sendFile(exchange, value, { stallMs, ranges: row.ranges ?? false })
  if (value instanceof SseAnswer) return sendStream(exchange, value, exchange.pipeline, mayStay)
  if (value instanceof SocketAnswer) return upgrade(exchange, value)
  throw new Error(`${row.id} returned nothing that suits its wire \`${row.wire}\``)
}

function readingOf({ pipeline }: Exchange, plan: Plan, mayStay: MayStay): Reading {
  const { stallMs, recheckMs } = pipeline
  // An agent signs a token for each request, which serves for a minute: a slow download may outlast it.
  return { stallMs, recheckMs, mayStay: isForCallers(plan.row) ? mayStay : () => Promise.resolve(true) }
}
