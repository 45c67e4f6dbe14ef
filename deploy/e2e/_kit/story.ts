import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunEvent } from '@windlass/shared/model/event.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import type { Node, Note } from '../programs/durable/interpreter/ast.ts'
import { expect, type Expectation, isSequential, type Effects } from './expectation.ts'

/** All that is known about a run of the interpreter when it is over. */
export interface Story {
  program: Node
  run: Run
  output: unknown
  events: readonly RunEvent[]
  /** What the run and its children noted. */
  notes: readonly Note[]
  /** How many agents were killed meanwhile. Each may have lost what its programs had done and not yet told. */
  kills: number
}

/** What is wrong with the story; nothing when it is as it must be. */
export function wrongIn(story: Story): string[] {
  const { program, run, output } = story
  if (run.status !== 'completed') return [`it is ${run.status}: ${run.error?.code} ${run.error?.message}`]
  const expected = expect(program, output, run.attempt)
  return [
    ...expected.problems,
    ...steps(story, expected),
    ...children(story, expected),
    ...races(story, expected),
    ...log(story, expected),
  ]
}

/** Each step is executed, and twice only when an attempt was lost before its result was kept. */
function steps({ notes, kills }: Story, { must, may }: Expectation): string[] {
  const known = new Set([...must.steps, ...may.steps])
  const done = Map.groupBy(
    notes.filter(({ what, path }) => what === 'step' && known.has(path)),
    ({ path }) => path,
  )
  const missing = must.steps.filter((path) => !done.has(path)).map((path) => `step ${path} was never executed`)
  const repeated = [...done].flatMap(([path, each]) => {
    const attempts = each.map(({ run, attempt }) => `${run} attempt ${attempt}`)
    return each.length - new Set(attempts).size <= kills ? [] : [`step ${path} was executed in ${attempts.join(', ')}`]
  })
  return [...missing, ...repeated]
}

/** A call has one child, over all replays and attempts, unless the child has failed. */
function children({ notes }: Story, { must, may }: Expectation): string[] {
  const runs = new Map<string, Set<string>>()
  for (const { what, path, run } of notes) {
    if (what === 'start' && path !== '') runs.set(path, (runs.get(path) ?? new Set()).add(run))
  }
  const missing = must.children.filter((path) => !runs.has(`${path}/c`)).map((path) => `call ${path} was never made`)
  const many = [...must.children, ...may.children].flatMap((path) => {
    const found = [...(runs.get(`${path}/c`) ?? [])]
    return found.length <= 1 ? [] : [`call ${path} has the children ${found.join(', ')}`]
  })
  return [...missing, ...many]
}

/** Whoever has won stays the winner in every replay of the attempt, and in the output. */
function races({ notes, run }: Story, { winners }: Expectation): string[] {
  const noted = notes.filter(({ what }) => what === 'race')
  const changed = [...Map.groupBy(noted, (note) => `${note.run} attempt ${note.attempt} ${note.path}`)]
    .filter(([, each]) => new Set(each.map(({ winner }) => winner)).size > 1)
    .map(([where, each]) => `${where} was won by ${each.map(({ winner }) => winner).join(', then ')}`)
  const misreported = noted
    .filter((note) => note.run === run.id && note.attempt === run.attempt && winners.has(note.path))
    .filter((note) => winners.get(note.path) !== note.winner)
    .map((note) => `${note.path} was won by ${note.winner}, and the output says ${winners.get(note.path)}`)
  return [...changed, ...misreported]
}

/** What the last attempt has written, each line once however often it was replayed. */
function log({ program, events }: Story, { must, may }: Expectation): string[] {
  const from = events.findLastIndex(({ type }) => type === 'run.restarted')
  const last = events.slice(from + 1)
  const lines = last.filter(({ channel }) => channel === 'log').map(({ data }) => String(data['text']))
  const phases = last.filter(({ channel }) => channel === 'phase').map(({ data }) => String(data['name']))
  const expected = linesOf(must)
  if (isSequential(program)) return [...same('log', expected, lines), ...same('phases', must.phases, phases)]
  return [
    ...within('log', { expected, allowed: linesOf(may), actual: lines }),
    ...within('phases', { expected: must.phases, allowed: may.phases, actual: phases }),
  ]
}

function linesOf({ text }: Effects): string[] {
  const lines = text.join('').split('\n')
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines
}

function same(what: string, expected: readonly string[], actual: readonly string[]): string[] {
  if (JSON.stringify(expected) === JSON.stringify(actual)) return []
  return [`its ${what}: ${JSON.stringify(actual)} in place of ${JSON.stringify(expected)}`]
}

interface Bounds {
  expected: readonly string[]
  allowed: readonly string[]
  actual: readonly string[]
}

function within(what: string, { expected, allowed, actual }: Bounds): string[] {
  const counts = (texts: readonly string[]) => Map.groupBy(texts, (text) => text)
  const [least, more, found] = [counts(expected), counts(allowed), counts(actual)]
  return [...new Set([...expected, ...actual])].flatMap((text) => {
    const [low, extra, has] = [least, more, found].map((each) => each.get(text)?.length ?? 0) as [
      number,
      number,
      number,
    ]
    return has >= low && has <= low + extra ? [] : [`its ${what} has "${text}" ${has} times in place of ${low}`]
  })
}

export function notesOf(folder: string, key: string): Note[] {
  const file = join(folder, key)
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  return lines.map((line) => JSON.parse(line) as Note)
}
