import type { ArgsOf, OutputOf } from '@windlass/shared/ops/op.ts'
import type { ops } from '@windlass/shared/ops/index.ts'
import { ApiError } from '../client/index.ts'
import { EXIT } from './exit-codes.ts'
import { detailOf, Failure, messageOf, reportOf } from './failure.ts'
import { textOf } from './json-argument.ts'
import { onLostOutput, whenHeard } from './lost-output.ts'
import type { OutputLoss } from './lost-output.ts'
import type { Session } from './session.ts'
import { note, print, safe } from './terminal.ts'

type Item = ArgsOf<typeof ops.runs.batch>['items'][number]
type Result = OutputOf<typeof ops.runs.batch>['results'][number]

/** What one request takes, by default of the service. */
const MOST_ITEMS = 1000
const MOST_CHARS = 12 * 1024 * 1024

/**
 * Starts a run for each line of a file, in one request for each thousand. Prints the ids of the runs, one a line, and
 * what was refused with the number of its line.
 */
export async function runBatch(
  session: Session,
  workflow: string,
  { file, common }: { file: string; common: Omit<Item, 'input'> },
): Promise<number> {
  const { text, from } = await textOf('--batch', file === '-' ? '-' : `@${file}`)
  const lines = linesOf(text, from)
  let refused = 0
  let sent = 0
  const output = heedOutput()
  try {
    for (const piece of pieces(lines)) {
      const at = { workflow, file, piece, started: sent - refused, isFirst: sent === 0 }
      if (output.loss) throw unread(output.loss, at)
      const items = piece.map(({ item }) => ({ ...common, ...item }))
      const { results } = await session.client.runs.batch({ workflow, items }).catch((error: unknown) => {
        throw stopped(error, at)
      })
      sent += piece.length
      refused += results.filter((result) => 'error' in result).length
      for (const [i, result] of results.entries()) tell(session, result, piece[i]!.n)
      // Nothing more is started of which nobody reads.
      await whenHeard()
    }
    if (output.loss?.code === 'OUTPUT_NOT_WRITTEN') throw unwritten(output.loss, sent - refused)
  } finally {
    output.forget()
  }
  if (lines.length > 1 || refused > 0)
    session.progress.note(`${lines.length - refused} of ${lines.length} runs were started`)
  return refused === 0 ? EXIT.ok : EXIT.failed
}

interface Stop {
  workflow: string
  file: string
  /** What was asked for last. */
  piece: Line[]
  /** Runs of the lines before. */
  started: number
  isFirst: boolean
}

/** The same command again would start once more what has been started of the file. */
function stopped(error: unknown, { workflow, file, piece, started, isFirst }: Stop): unknown {
  if (!(error instanceof ApiError)) return error
  const first = piece[0]!.n
  const last = piece.at(-1)!.n
  // Under a key a run is started once, however often it is asked for.
  const isOpen = error.mayBeDone && !piece.every(({ item }) => item.idempotencyKey !== undefined)
  if (isFirst && !isOpen) return error
  const { exit } = reportOf(error, 'run')
  const before = isFirst ? '' : ` ${linesBefore({ file, first, started })}`
  const open = isOpen ? ` Runs of lines ${first} to ${last} may have been started.` : ''
  const goOn = restOf({ workflow, file, first })
  const next = isOpen
    ? `windlass runs list --workflow ${workflow} shows whether they were; where none was, go on from line ${first}:\n` +
      `      ${goOn}`
    : `go on from line ${first}: ${goOn}`
  const detail = { ...detailOf(error), goOnFrom: first, ...(isOpen && { mayBeStarted: [first, last] }) }
  return new Failure(`${messageOf(error)}${before}${open}`, next, exit, { code: error.code, detail })
}

const linesBefore = ({ file, first, started }: { file: string; first: number; started: number }) =>
  `Lines 1 to ${first - 1}${file === '-' ? ' of what was read' : ''} are done: ${started} runs were started.`

function restOf({ workflow, file, first }: { workflow: string; file: string; first: number }): string {
  // What was read may be the rest of a file already: lines are counted from where that began.
  const from = file === '-' ? `... | tail -n +${first}` : `tail -n +${first} '${file}'`
  return `${from} | windlass run ${workflow} --batch -, with the same flags`
}

/** The rest is left alone when nobody reads what was started of it. */
function unread({ what, exit, code }: OutputLoss, { workflow, file, piece, started }: Stop): Failure {
  const first = piece[0]!.n
  const next = `go on from line ${first}: ${restOf({ workflow, file, first })}`
  const detail = { goOnFrom: first }
  return new Failure(`${what}. ${linesBefore({ file, first, started })}`, next, exit, { code, detail })
}

function unwritten({ what, exit, code }: OutputLoss, started: number): Failure {
  const next = 'windlass runs list shows them; the same again would start each of them once more'
  return new Failure(`${what}. All lines are done: ${started} runs were started.`, next, exit, code)
}

function heedOutput() {
  const heard: { loss?: OutputLoss; forget: () => void } = { forget: onLostOutput((loss) => (heard.loss = loss)) }
  return heard
}

function tell(session: Session, result: Result, n: number): void {
  if (session.isJson) return print(JSON.stringify({ line: n, ...result }))
  if ('run' in result) return print(result.run.id)
  note(safe(`line ${n}: ${result.error.code}: ${result.error.message}`, process.stderr))
}

interface Line {
  n: number
  item: Item
  chars: number
}

function linesOf(text: string, from: string): Line[] {
  const lines = text.split('\n').flatMap((line, i) => (line.trim() === '' ? [] : [lineOf(line, i + 1, from)]))
  if (lines.length > 0) return lines
  throw new Failure(`--batch: ${from} holds no line.`, `a line for each run: {"input":{"name":"Ada"}}`)
}

function lineOf(line: string, n: number, from: string): Line {
  const item = parsed(line)
  if (typeof item === 'object' && item !== null && !Array.isArray(item)) return { n, item, chars: line.length }
  throw new Failure(
    `--batch: line ${n} of ${from} is not a JSON object.`,
    `a line for each run: {"input":{"name":"Ada"},"idempotencyKey":"ada-1"}`,
  )
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

function pieces(lines: readonly Line[]): Line[][] {
  const all: Line[][] = []
  let chars = 0
  for (const line of lines) {
    const last = all.at(-1)
    if (!last || last.length === MOST_ITEMS || chars + line.chars > MOST_CHARS) {
      all.push([line])
      chars = line.chars
    } else {
      last.push(line)
      chars += line.chars
    }
  }
  return all
}
