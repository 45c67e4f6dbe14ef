import { styleText } from 'node:util'
import { LINE_BREAK } from '@windlass/shared/line-break.ts'
import { Colours } from './colours.ts'

/** Standard output carries the answer and nothing else. */
export function print(text: string): void {
  process.stdout.write(`${safeLines(text, process.stdout)}\n`)
}

/** Standard error carries what is said about it: events, progress, warnings, errors. */
export function note(text: string): void {
  process.stderr.write(`${safeLines(text, process.stderr)}\n`)
}

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'

/** Coloured when the stream is a terminal and NO_COLOR is not set. */
export function paint(style: Style, text: string, stream: NodeJS.WriteStream = process.stderr): string {
  return hasColour(stream) ? styleText(style, text, { validateStream: false }) : text
}

function hasColour(stream: NodeJS.WriteStream): boolean {
  // The convention counts NO_COLOR only when it is not empty.
  return stream.isTTY && !process.env['NO_COLOR'] && process.env['TERM'] !== 'dumb'
}

/** Indented for eyes, one line for programs. */
export function json(value: unknown): string {
  return process.stdout.isTTY ? jsonForEyes(value) : JSON.stringify(value)
}

/** JSON escapes some of what a terminal obeys by itself, and so it can the rest. */
export function jsonForEyes(value: unknown): string {
  const escape = (each: string) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`
  return JSON.stringify(value, null, 2).replace(NOT_ESCAPED, escape)
}

const NOT_ESCAPED = /[\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** Whatever is shown, in the end: an error may hold the words of a service or of a program. */
export function safeLines(text: string, stream: NodeJS.WriteStream): string {
  if (!stream.isTTY) return text
  return text
    .split('\n')
    .map((line) => safe(line, stream))
    .join('\n')
}

/**
 * What a program has written, made safe for a line of ours. On a terminal colours stay, everything that could move the
 * cursor, rename the window, hide text or turn its order around goes. Files and pipes get it as it is, but for lines of
 * its own.
 */
export function safe(text: string, stream: NodeJS.WriteStream, indent?: number): string {
  if (!stream.isTTY) return behindBar(text, stream, indent)
  const parts = text.split(COLOUR)
  const colours = new Colours()
  const colour = (sequence: string) => (hasColour(stream) ? colours.next(sequence) : '')
  const clean = parts.map((part, index) => (index % 2 === 1 ? colour(part) : part.replace(CONTROL, '')))
  return clean.join('') + (parts.length > 1 && hasColour(stream) ? '\u001b[0m' : '')
}

/**
 * For a file or a pipe: what follows a line break in a text of others begins no line. There it would pass for our own
 * words, and CI obeys lines that begin with `::`, also behind blanks.
 */
export function behindBar(text: string, stream: NodeJS.WriteStream, indent = 2): string {
  if (stream.isTTY || !LINE_BREAK.test(text)) return text
  return linesOf(text).join(`\n${' '.repeat(indent)}│ `)
}

/** Its lines, whatever breaks them. A break at the end begins none. */
export function linesOf(text: string): string[] {
  const lines = text.split(LINE_BREAK)
  return lines.length > 1 && lines.at(-1) === '' ? lines.slice(0, -1) : lines
}

// oxlint-disable-next-line no-control-regex -- it is what is looked for
const COLOUR = /(\u001b\[[\d;]*m)/

// A whole escape sequence, or any single control character but the tab, those of the direction of writing among them.
const CONTROL =
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-~])?|[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** `1.2 s`, `3 min 5 s`: how long, for eyes. */
export function lengthText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`
  if (ms < 60_000) return `${Math.round(ms / 1000)} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
}

/** `14:03:07.250` in local time. */
export function clockText(at: number): string {
  const time = new Date(at)
  const two = (n: number) => String(n).padStart(2, '0')
  const ms = String(time.getMilliseconds()).padStart(3, '0')
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${ms}`
}

/** `2026-11-20 14:03:07` in local time; a dash for what has not been. */
export function timeText(at: number | null): string {
  if (at === null) return '-'
  const time = new Date(at)
  const two = (n: number) => String(n).padStart(2, '0')
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`
  return `${day} ${clockText(at).slice(0, 8)}`
}

/** Text broken between words for the terminal, each line behind the same indent; elsewhere left in one. */
export function wrapped(text: string, indent: string, stream: NodeJS.WriteStream): string {
  const room = Math.max(20, (stream.columns || Infinity) - indent.length)
  const lines: string[] = []
  for (const part of text.split(' ')) {
    const line = lines.at(-1)
    if (line !== undefined && line.length + 1 + part.length <= room) lines[lines.length - 1] = `${line} ${part}`
    else lines.push(part)
  }
  return lines.map((line) => indent + line).join('\n')
}

const DAY_MS = 86_400_000

/** The same for a table: on a terminal of today the time alone, of this year without the year. */
export function cellTime(at: number | null): string {
  const full = timeText(at)
  if (at === null || !process.stdout.isTTY) return full
  const today = timeText(Date.now())
  if (full.slice(0, 10) === today.slice(0, 10)) return full.slice(11)
  return Math.abs(Date.now() - at) < 300 * DAY_MS ? full.slice(5, 16) : full.slice(0, 10)
}

/** `1.5 kB`, with 1000 bytes to the kilobyte, as npm and file managers count. */
export function bytesText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(1)} kB`
  return `${(bytes / 1_000_000).toFixed(1)} MB`
}
