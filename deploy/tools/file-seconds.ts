// What became of each test file and how long it took: a reporter of node:test that notes it while the tests run, and
// the list that stands at the end.
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { inspect } from 'node:util'
import { PROJECT } from './source-files.ts'
import type { TestProcess } from './test-groups.ts'

/** An event of node:test, as far as it is looked at here. */
export interface TestEvent {
  readonly type: string
  readonly data?: {
    readonly name?: string
    readonly nesting?: number
    readonly file?: string
    readonly todo?: string | boolean
    /** What a process has written. */
    readonly message?: string
    readonly details?: { readonly duration_ms?: number; readonly type?: string; readonly error?: unknown }
  }
}

export interface FileResult {
  /** Path from the project's root. */
  readonly file: string
  /** Duration; it includes the start of the process, except for files of a group. */
  readonly ms: number
  readonly tests: number
  readonly failed: number
}

/** A test that failed, or a file that could not be executed. */
export interface Failure {
  readonly file: string
  readonly name: string
  /** Its error, the beginning of it. */
  readonly text: string
}

export interface Followed {
  /**
   * Answers with the result when a whole file has ended. Its tests may be counted later: their events wait for their
   * turn.
   */
  see(event: TestEvent): FileResult | undefined
  /** Results of the files, in the order in which they ended. */
  results(): FileResult[]
  /** Files whose process ended before they did. */
  unfinished(): string[]
  /** Number of all tests, also of those that a kit made: node:test counts them for the kit's file. */
  executed(): number
  /** node:test itself ends with 0 when nothing but a hook of a suite has failed. */
  hasFailed(): boolean
  failures(): readonly Failure[]
}

export function followFiles(processes: readonly TestProcess[]): Followed {
  const grouped = new Set(processes.filter(({ files }) => files.length > 1).flatMap(({ files }) => files))
  const alone = new Set(processes.filter(({ files }) => files.length === 1).map(({ entry }) => entry))
  const ended = new Map<string, number>()
  const counts = new Map<string, { tests: number; failed: number }>()
  const failures: Failure[] = []
  /** By path: the end of what its process has written to its stderr. */
  const complaints = new Map<string, string>()
  /** Also by a test that a kit has made, which counts for the kit's file. */
  const redFiles = new Set<string>()
  let isRed = false

  /** A group has a suite for each file; a file alone is a test by its path. */
  function wholeFile({ name = '', file = '', details }: NonNullable<TestEvent['data']>): string | undefined {
    if (details?.type === 'suite') return grouped.has(name) ? name : undefined
    const own = path.relative(PROJECT, file)
    return alone.has(own) && path.resolve(PROJECT, name) === file ? own : undefined
  }

  function count(type: string, data: NonNullable<TestEvent['data']>): void {
    const { file = '', details, todo } = data
    const isFailure = type === 'test:fail' && !todo
    if (isFailure) {
      isRed = true
      const whole = wholeFile(data)
      if (whole !== undefined) redFiles.add(whole)
      const failure = failureOf(data, complaints.get(file))
      if (failure) failures.push(failure)
    }
    // A file of which nothing was executed, since no test has the name that was asked for, passes as a whole.
    if (!isFailure && wholeFile(data) !== undefined) return
    const own = path.relative(PROJECT, file)
    const { tests, failed } = counts.get(own) ?? { tests: 0, failed: 0 }
    const isTest = details?.type !== 'suite'
    counts.set(own, { tests: tests + (isTest ? 1 : 0), failed: failed + (isFailure && isTest ? 1 : 0) })
  }

  const resultOf = (file: string): FileResult => {
    const { tests, failed } = counts.get(file) ?? { tests: 0, failed: 0 }
    return { file, ms: ended.get(file) ?? 0, tests, failed: Math.max(failed, redFiles.has(file) ? 1 : 0) }
  }

  return {
    see({ type, data }) {
      if (!data) return undefined
      const { file = '', message = '' } = data
      if (type === 'test:stderr')
        complaints.set(file, ((complaints.get(file) ?? '') + message).slice(-MOST_COMPLAINT_CHARACTERS))
      if (type === 'test:pass' || type === 'test:fail') count(type, data)
      if (type !== 'test:complete' || data.nesting !== 0) return undefined
      const whole = wholeFile(data)
      if (whole === undefined) return undefined
      ended.set(whole, data.details?.duration_ms ?? 0)
      return resultOf(whole)
    },
    results: () => [...ended.keys()].map(resultOf),
    unfinished: () => processes.flatMap(({ files }) => files).filter((file) => !ended.has(file)),
    executed: () => [...counts.values()].reduce((sum, { tests }) => sum + tests, 0),
    hasFailed: () => isRed,
    failures: () => failures,
  }
}

/** The difference of two long texts has its place in the output of the run; this is for a list at its end. */
const MOST_CHARACTERS = 6_000
const MOST_COMPLAINT_CHARACTERS = 2_000

/** Undefined where something within has failed, which is told by itself. */
function failureOf(
  { name = '', file = '', details }: NonNullable<TestEvent['data']>,
  complaint = '',
): Failure | undefined {
  const error = (details?.error ?? {}) as { failureType?: string; cause?: unknown; exitCode?: number; signal?: string }
  if (error.failureType === 'subtestsFailed') return undefined
  const cause = error.cause ?? error
  const why = typeof cause === 'string' ? cause : inspect(cause)
  // Its tests may all be green: then only what it wrote last says why its process is red.
  const end = error.signal ? `ended by ${error.signal}` : `exit code ${error.exitCode}`
  const isProcess = Boolean(error.signal) || typeof error.exitCode === 'number'
  const text = isProcess ? `${why}: ${end}\n${complaint}`.trim() : why
  return { file: path.relative(PROJECT, file), name, text: text.slice(0, MOST_CHARACTERS) }
}

/** The reporter finds what is executed in this file, whose path stands in the environment. */
export const PROCESSES = 'WINDLASS_TEST_PROCESSES'

/** What is known of a run when it is over, or was cut off. */
export interface Notes {
  readonly results: readonly FileResult[]
  readonly executed: number
  /** Something is red, whatever the exit code says. */
  readonly hasFailed: boolean
  readonly failures: readonly Failure[]
}

/**
 * Writes a line of JSON for each file that has ended, with what has failed since the line before: who looks on, or
 * interrupts the run, need not wait for its end to read why. At the end all files again with their tests counted.
 * node:test takes the default export of a module as its reporter.
 */
// oxlint-disable-next-line import/no-default-export
export default async function* noteFiles(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const followed = followFiles(JSON.parse(readFileSync(process.env[PROCESSES] ?? '', 'utf8')) as TestProcess[])
  let noted = 0
  const news = () => followed.failures().slice(noted, (noted = followed.failures().length))
  for await (const event of events) {
    const result = followed.see(event)
    if (result || followed.failures().length > noted)
      yield lineOf({ results: result ? [result] : [], executed: 0, hasFailed: false, failures: news() })
  }
  const results = followed.results()
  yield lineOf({ results, executed: followed.executed(), hasFailed: followed.hasFailed(), failures: news() })
}

const lineOf = (notes: Notes) => `${JSON.stringify(notes)}\n`

/** Reads what the reporter has written; nothing when the run ended before any file did. */
export function readNotes(file: string): Notes {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []
  const notes = lines.flatMap((line) => parsed(line) ?? [])
  const last = new Map(notes.flatMap(({ results }) => results).map((result) => [result.file, result]))
  return {
    results: [...last.values()],
    executed: Math.max(0, ...notes.map(({ executed }) => executed)),
    hasFailed: notes.some(({ hasFailed }) => hasFailed),
    failures: notes.flatMap(({ failures }) => failures),
  }
}

/** The last line may be cut off, when the run was killed. */
function parsed(line: string): Notes | undefined {
  try {
    return JSON.parse(line) as Notes
  } catch {
    return undefined
  }
}

/** Files that took less than this are summed up in one line. */
const SHORT_MS = 1000

/** The list for the end of a run, longest first, with `expected` files that never ended named last. */
export function listOf(all: readonly FileResult[], expected: readonly string[]): string {
  const sorted = all.toSorted((a, b) => b.ms - a.ms || a.file.localeCompare(b.file))
  const long = sorted.filter(({ ms, failed }) => ms >= SHORT_MS || failed > 0)
  const short = sorted.length - long.length
  const sum = (files: readonly FileResult[]) => files.reduce((total, { ms }) => total + ms, 0)
  const ended = new Set(all.map(({ file }) => file))
  return [
    'Seconds per file:',
    ...long.map(({ file, ms, failed }) => row(ms, file + (failed > 0 ? `  ${failed} failed` : ''))),
    ...(short > 0 ? [row(sum(sorted) - sum(long), `${short} files of less than ${SHORT_MS / 1000} s each`)] : []),
    row(sum(sorted), `${sorted.length} files, ${all.reduce((total, { tests }) => total + tests, 0)} tests`),
    ...expected.filter((file) => !ended.has(file)).map((file) => `       –  ${file}  did not end`),
  ].join('\n')
}

const row = (ms: number, text: string) => `${(ms / 1000).toFixed(1).padStart(8)}  ${text}`
