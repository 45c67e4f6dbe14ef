import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Log } from '@windlass/shared/log.ts'
import type { JsonSchema } from '../workflows/json-schema.ts'
import { turnInLine } from '../slices.ts'
import { startConfined } from '../tools/confined.ts'
import { createToolPool, type Held, type Outcome } from '../tools/pool.ts'
import { createBudget } from './budget.ts'
import { type Check, compile } from './compile.ts'
import type { Invalid } from './invalid.ts'
import type { JudgeAnswer, JudgeJob } from './program.ts'
import type { Schema } from './schema.ts'

/** Tells whether values fit their schemas: at once where that is provably cheap, else in a process that may be lost. */
export interface Judge {
  /**
   * Resolves whatever schema and value do. Rejects when nothing can be said about them: the coordinator is being
   * stopped, no process can be started, too much of this org waits, or the agent does not hold the run that would pay.
   */
  judge(schema: Schema | undefined, value: Value, ask: JudgeAsk): Promise<Verdict>
  /** Whether anything can be judged by this schema at all. */
  tryOut(schema: Schema | undefined, ask: Omit<JudgeAsk, 'root'>): Promise<Verdict>
  /** Processes that are up. */
  awake(): number
  close(): Promise<void>
}

/** JSON; `parsed` is at hand where somebody has parsed it already. */
type Value = { text: string; parsed?: unknown }

/** The run that is to pay for what its agent says of it. */
export interface Payer {
  run: string
  /** Under each epoch it has 2 s a minute: nobody pays for those who held it before. */
  epoch: number
  /** Asked before a process or the database is. Rejects where the agent does not hold the run: then neither is. */
  assertHeld(): Promise<void>
}

export interface JudgeAsk extends Partial<Payer> {
  /** Names the value in the path: `input`. */
  root: string
  org: string
  /** Exempts values of runs and bulk retries, which come one by one, from the limit of waiting jobs. */
  isPatient?: boolean
}

export type Verdict =
  | { is: 'fits' }
  /** It does not fit; or nobody can tell, since that takes too long, the schema is none, or the run's time is spent. */
  | { is: 'misfit' | 'unusable' | 'spent'; invalid: Invalid }
  /** With `isFinal` it has used up its time; else the machine may have had a bad moment. */
  | { is: 'too slow'; invalid: Invalid; isFinal: boolean }

/** Processor time for one value. An honest value takes well under a millisecond. */
const VALUE_MS = 250
/** Processor time to compile a schema: four times what the largest one takes. */
const COMPILE_MS = 4000
/** A schema must compile in half of that at its deploy, so that a slow moment never fails it later. */
const TRY_OUT_MS = COMPILE_MS / 2
/** Wall-clock limit; only an overloaded machine reaches it. */
const CLOCK_MS = 60_000
const HEAP_MB = 192
/** 256 MiB for schemas and values beside what Node takes for itself. */
const DATA_MB = 320
const MEMORY_MB = 256
/** A process caches at most this many characters of schemas, and at most `HELD_SCHEMAS` of them. */
const HELD_CHARS = 512 * 1024
const HELD_SCHEMAS = 200
/**
 * A job whose process died or met the wall-clock limit is tried again, in a process that nobody has used: the machine
 * may have had a bad moment, and what another org had judged before may have left something behind.
 */
const TRIES = 2
/** Steps of applying a schema that are done here: some milliseconds, 25 where a union tries 150 shapes in vain. */
const MOST_STEPS = 2e5
/** Values that may take more, half a millisecond, are judged in turns: many requests may begin in one of the loop. */
const STEPS_OF_TURN = 2e4
const MOST_VERDICTS = 500
/** Of schemas that are compiled in this process. A character takes some 40 bytes then. */
const MOST_COMPILED_CHARS = 1024 * 1024
/** Time for which a value that took too long is not tried again: who gave up waiting for its verdict asks once more. */
const SLOW_FRESH_MS = 60_000

/** Processor time for all values of a run in a minute. */
const RUN_MS = 2000
const WINDOW_MS = 60_000
/**
 * Processor time per org and minute for compiling schemas in this process: alternating between many versions would
 * compile each anew.
 */
const COMPILING = { ms: 1000, windowMs: WINDOW_MS }

const PROCESSES = {
  name: 'judging' as const,
  entry: new URL('./program.ts', import.meta.url),
  cpuMs: VALUE_MS,
  wallMs: CLOCK_MS,
  heapMb: HEAP_MB,
  dataMb: DATA_MB,
}

export interface JudgeOptions {
  log: Log
  idleMs?: number
  /** Processor time for all values of a run in a minute. */
  runMs?: number
}

export function createJudge({ log, idleMs = 60_000, runMs = RUN_MS }: JudgeOptions): Judge {
  const pool = createToolPool<JudgeJob, JudgeAnswer>({
    ...PROCESSES,
    start: () => startConfined({ ...PROCESSES, log }),
    most: 2,
    idleMs,
    mostWaiting: 100,
    log,
  })
  const budget = createBudget({ ms: runMs, windowMs: WINDOW_MS })
  const compiling = createBudget(COMPILING)
  const checks = new LRUCache<string, Check>({ max: MOST_VERDICTS, maxSize: MOST_COMPILED_CHARS })
  /** Schemas by which something can be judged. */
  const usable = new LRUCache<string, true>({ max: MOST_VERDICTS })
  const slowInputs = createSlowInputs()

  /** Returns undefined when the value has to be checked in a process. */
  function checkHere({ key, origin, text, paths }: Schema, org: string, chars: number): Check | undefined {
    if (paths === undefined || paths * chars > MOST_STEPS) return undefined
    const known = checks.get(key)
    if (known || !compiling.hasLeft(org)) return known
    const since = performance.now()
    try {
      const check = compile(origin, JSON.parse(text) as JsonSchema)
      checks.set(key, check, { size: text.length })
      return check
    } catch {
      // The process will say why the schema cannot be compiled.
      return undefined
    } finally {
      compiling.spend(org, performance.now() - since)
    }
  }

  async function inProcess(schema: Schema, value: JudgeJob['value'], ask: Ask): Promise<Verdict> {
    const payer = await payerOf(ask)
    const { org, isPatient = false, compileMs } = ask
    // Asked once: a try that the machine has ended must not keep the run from the next.
    if (payer !== undefined && !budget.hasLeft(payer)) return spent(ask.root, runMs)
    for (let tries = 1; ; tries++) {
      /** Set where the process does not have the schema yet: that is the first step, and the value the second. */
      let firstMs: number | undefined
      const payload = (held: Held): JudgeJob => {
        firstMs = held.has(schema.key) ? undefined : compileMs
        return { key: schema.key, ...toSend(held, schema), ...(value && { value }) }
      }
      const outcome = await pool.run({ org, payload, cpuMs: () => firstMs, isPatient, inNewProcess: tries > 1 })
      const isOfValue = firstMs === undefined || ('steps' in outcome && outcome.steps > 0)
      const isOver = outcome.kind === 'answer' || isFinal(outcome) || tries === TRIES
      if (payer !== undefined) budget.spend(payer, costOf(outcome, isOfValue || !isOver ? VALUE_MS : compileMs))
      if (outcome.kind === 'answer') {
        if (outcome.answer.is !== 'unusable') usable.set(schema.key, true)
        return verdictOf(outcome.answer, ask.root)
      }
      log.warn('judging.process.lost', { org, run: ask.run, ...outcome, tries, schema: schema.key })
      if (isOver) return givenUp(outcome, ask.root, isOfValue)
    }
  }

  return {
    async judge(schema, value, ask) {
      if (!schema) return { is: 'fits' }
      const check = checkHere(schema, ask.org, value.text.length)
      const judged = () => inProcess(schema, { text: value.text, root: ask.root }, { ...ask, compileMs: COMPILE_MS })
      return check ? judgedBy(check, schema, value, ask) : slowInputs(schema, value.text, ask, judged)
    },
    async tryOut(schema, ask) {
      if (!schema || usable.get(schema.key) || checkHere(schema, ask.org, 0)) return { is: 'fits' }
      return inProcess(schema, undefined, { ...ask, root: '', compileMs: TRY_OUT_MS })
    },
    awake: () => pool.awake(),
    close: () => pool.close(),
  }
}

async function judgedBy(check: Check, { paths = 0 }: Schema, value: Value, { org, root }: JudgeAsk): Promise<Verdict> {
  if (paths * value.text.length > STEPS_OF_TURN) await turnInLine(org)
  const invalid = check('parsed' in value ? value.parsed : JSON.parse(value.text), root)
  return invalid ? { is: 'misfit', invalid } : { is: 'fits' }
}

/** Keeps verdicts on inputs that took too long. Values of runs are left out: each run pays for its own. */
function createSlowInputs() {
  const cache = new LRUCache<string, Verdict>({ max: MOST_VERDICTS, ttl: SLOW_FRESH_MS })
  return async ({ key }: Schema, text: string, { org, root, run }: JudgeAsk, judged: () => Promise<Verdict>) => {
    if (run !== undefined) return judged()
    const name = [org, root, key, hash('sha256', text)].join(' ')
    const known = cache.get(name)
    if (known) return known
    const verdict = await judged()
    if (verdict.is === 'too slow' && verdict.isFinal) cache.set(name, verdict)
    return verdict
  }
}

/** Undefined for what no run pays for. */
async function payerOf({ org, run, epoch, assertHeld }: JudgeAsk): Promise<string | undefined> {
  if (run === undefined) return undefined
  await assertHeld?.()
  return [org, run, epoch].join('/')
}

type Ask = JudgeAsk & { compileMs: number }
type Loss = Exclude<Outcome<JudgeAnswer>, { kind: 'answer' }>

/** The schema goes along unless the process has it; before there is too much, all is forgotten. */
function toSend(held: Held, { key, origin, text }: Schema): Pick<JudgeJob, 'schema' | 'isFull'> {
  if (held.has(key)) return {}
  const chars = [...held.values()].reduce((sum, each) => sum + each, text.length)
  const isFull = chars > HELD_CHARS || held.size >= HELD_SCHEMAS
  if (isFull) held.clear()
  held.set(key, text.length)
  return { schema: { origin, text }, isFull }
}

/** Returns whether another try would only use up its processor time again. */
function isFinal(outcome: Loss): boolean {
  return outcome.kind === 'too slow' && outcome.by === 'cpu'
}

/**
 * What a process has used that was ended is not known. The first counts as one value; the second, of a schema, as all
 * that it may take: a run whose schemas kill processes has two of them a minute.
 */
function costOf(outcome: Outcome<JudgeAnswer>, mostMs: number): number {
  return outcome.kind === 'answer' ? outcome.cpuMs : mostMs
}

function givenUp(outcome: Loss, root: string, isOfValue: boolean): Verdict {
  const kind = usedUp(outcome)
  if (!isOfValue) {
    const message = kind
      ? `its schema takes too much ${kind} to compile: give it plainer types`
      : `its schema was given up: ${endedTwice(outcome)} while they compiled it: give it plainer types, or try again`
    return { is: 'unusable', invalid: { path: root, message } }
  }
  const much = kind === 'time' ? `longer than ${VALUE_MS} ms` : `more memory than ${MEMORY_MB} MiB`
  const message = kind
    ? `takes ${much} to be checked against its schema: ${ADVICE}`
    : `cannot be checked: ${endedTwice(outcome)} while they did so: try again, or ${ADVICE}`
  return { is: 'too slow', invalid: { path: root, message }, isFinal: isFinal(outcome) }
}

/** What the job had used up; undefined where that is not known: SIGKILL may come from the machine or from a person. */
function usedUp(outcome: Loss): 'time' | 'memory' | undefined {
  if (isFinal(outcome)) return 'time'
  return outcome.kind === 'died' && outcome.of === 'memory' && outcome.how !== 'SIGKILL' ? 'memory' : undefined
}

function endedTwice(outcome: Loss): string {
  if (outcome.kind === 'too slow') return `two processes in a row gave no answer for ${CLOCK_MS / 1000} s`
  return `two processes in a row ended (${outcome.how})`
}

const ADVICE = 'shorten the value, simplify `@pattern`, or make the type plainer where unions hold unions'

function spent(root: string, runMs: number): Verdict {
  const message = `cannot be checked: values of this run have used up their ${runMs} ms of checking within a minute`
  return { is: 'spent', invalid: { path: root, message: `${message}: ${ADVICE}` } }
}

function verdictOf(answer: JudgeAnswer, root: string): Verdict {
  if (answer.is !== 'unusable') return answer
  return { is: 'unusable', invalid: { path: root, message: answer.why } }
}
