import type { RunEvent } from '@windlass/shared/model/event.ts'
import { clockText, linesOf, paint, safe } from './terminal.ts'
import type { Style } from './terminal.ts'

const STATUS_STYLE: Record<string, Style> = {
  completed: 'green',
  failed: 'red',
  cancelled: 'yellow',
  cancelling: 'yellow',
  restarted: 'yellow',
  sleeping: 'cyan',
  awaiting_input: 'cyan',
  waiting_for_child: 'cyan',
  blocked: 'red',
}

// Below what happened.
const INDENT = 14

/** One event as one line (a log text of several lines as several): the time, and what happened. */
export function eventLine(event: RunEvent, stream: NodeJS.WriteStream = process.stderr): string {
  return `${paint('dim', clockText(event.at), stream)}  ${what(event, stream)}`
}

/** The text of a log event. */
export function logText(event: RunEvent): string {
  const { text, fields } = event.data
  const more = isFilled(fields) ? ` ${JSON.stringify(fields)}` : ''
  return `${typeof text === 'string' ? text.replace(/\n$/, '') : JSON.stringify(event.data)}${more}`
}

function what(event: RunEvent, stream: NodeJS.WriteStream): string {
  const { channel, type, data } = event
  if (channel === 'lifecycle') return lifecycle(type.replace(/^run\./, ''), data, stream)
  if (channel === 'phase') return `${paint('cyan', '▸', stream)} ${paint('bold', phaseText(data, stream), stream)}`
  if (channel === 'log') return logLines(event, stream)
  if (channel === 'output') return paint('dim', 'output', stream)
  return `${type} ${safe(JSON.stringify(data), stream, INDENT)}`
}

function lifecycle(status: string, data: Record<string, unknown>, stream: NodeJS.WriteStream): string {
  const style = STATUS_STYLE[status]
  const text = status.replaceAll('_', ' ')
  const more = circumstances(data).map((text) => safe(text, stream, INDENT))
  return [style ? paint(style, text, stream) : text, ...more].join('  ')
}

/** What an event of the run's life may say about how and why. */
function circumstances(data: Record<string, unknown>): string[] {
  const { attempt, reason, error, runner, expected, received, at } = data
  return [
    typeof attempt === 'number' && attempt > 1 ? `attempt ${attempt}` : '',
    typeof runner === 'string' ? runner : isNamed(runner) ? `on ${runner.name}` : '',
    typeof reason === 'string' ? reason : '',
    typeof expected === 'string' && typeof received === 'string'
      ? `recorded ${expected}, came ${received}${typeof at === 'string' && at !== '' ? ` at ${at}` : ''}`
      : '',
    isError(error) ? `${error.code ?? ''} ${error.message}`.trim() : '',
  ].filter((text) => text !== '')
}

function phaseText(data: Record<string, unknown>, stream: NodeJS.WriteStream): string {
  const { name, data: details } = data
  const more = isFilled(details) ? ` ${JSON.stringify(details)}` : ''
  return safe(`${typeof name === 'string' ? name : JSON.stringify(data)}${more}`, stream, INDENT)
}

function logLines(event: RunEvent, stream: NodeJS.WriteStream): string {
  const { level } = event.data
  const style = event.type !== 'log.stderr' ? 'dim' : level === 'error' ? 'red' : 'yellow'
  // Not by colour alone: many see none.
  const label = level === 'warn' || level === 'error' ? paint(style, `${level}: `, stream) : ''
  const bar = paint(style, '│', stream)
  const text = logText(event)
  // A terminal is given no carriage return; elsewhere one may count for a line break.
  const lines = stream.isTTY ? text.split('\n') : linesOf(text)
  const barred = lines.map((line, at) => `${bar} ${at === 0 ? label : ''}${safe(line, stream)}`)
  return barred.join(`\n${' '.repeat(INDENT)}`)
}

function isFilled(value: unknown): boolean {
  return value !== undefined && value !== null && (typeof value !== 'object' || Object.keys(value).length > 0)
}

function isNamed(value: unknown): value is { name: string } {
  return typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string'
}

function isError(value: unknown): value is { message: string; code?: string } {
  return typeof value === 'object' && value !== null && 'message' in value && typeof value.message === 'string'
}
