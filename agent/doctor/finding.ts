/** `ok`; `warn`: it works, and something should be done; `fail`: no work can be done so; `skipped`: not asked, and why. */
export type Verdict = 'ok' | 'warn' | 'fail' | 'skipped'

export interface Finding {
  check: string
  verdict: Verdict
  /** A sentence for whoever keeps the machine. */
  message: string
  /** What to do about it; null where there is nothing to do. */
  fix: string | null
}

export type Answer = Omit<Finding, 'check'>

export const ok = (message: string): Answer => ({ verdict: 'ok', message, fix: null })
export const warn = (message: string, fix: string): Answer => ({ verdict: 'warn', message, fix })
export const fail = (message: string, fix: string): Answer => ({ verdict: 'fail', message, fix })
export const skipped = (message: string): Answer => ({ verdict: 'skipped', message, fix: null })

export interface Question {
  check: string
  /** What has to be fine before it makes sense to ask. */
  after?: string
  deadlineMs?: number
  ask(signal: AbortSignal): Answer | Promise<Answer>
}

const DEADLINE_MS = 10_000

/** Asks one after the other, each with a deadline; `onFinding` hears each answer as it comes. */
export async function examine(
  questions: readonly Question[],
  signal: AbortSignal,
  onFinding: (finding: Finding) => void = () => undefined,
): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const question of questions) {
    signal.throwIfAborted()
    const before = findings.find(({ check }) => check === question.after)
    const answer =
      before && isMissing(before) ? skipped(`not asked: ${before.check} comes first`) : await ask(question, signal)
    const finding = { check: question.check, ...answer }
    findings.push(finding)
    onFinding(finding)
  }
  return findings
}

function isMissing({ verdict }: Finding): boolean {
  return verdict === 'fail' || verdict === 'skipped'
}

/** A question that never comes back must not keep the others from being asked. */
async function ask(question: Question, signal: AbortSignal): Promise<Answer> {
  const { deadlineMs = DEADLINE_MS } = question
  const late = new AbortController()
  // Not `AbortSignal.timeout`: its timer does not keep the process, which would end without a word.
  const timer = setTimeout(() => late.abort(), deadlineMs)
  const both = AbortSignal.any([signal, late.signal])
  const { promise: given, reject } = Promise.withResolvers<never>()
  const giveUp = () => reject(new Error(`no answer within ${deadlineMs / 1000} s`))
  both.addEventListener('abort', giveUp, { once: true })
  try {
    return await Promise.race([question.ask(both), given])
  } catch (error) {
    signal.throwIfAborted()
    return fail(`It could not be found out: ${messageOf(error)}.`, 'look for what holds it up, then ask again')
  } finally {
    clearTimeout(timer)
    both.removeEventListener('abort', giveUp)
  }
}

export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return messageOf(error.errors[0])
  if (!(error instanceof Error)) return String(error)
  // `fetch failed` says nothing; what happened is in its cause.
  if (error.cause instanceof Error) return messageOf(error.cause)
  return error.message || error.name
}
