import type { Cause } from '@windlass/shared/model/why.ts'
import type { Situation, Wait } from './store-why.ts'
import { causeOf, counted, timeText } from './why-texts.ts'

const PROMPT_SHOWN = 200

/** One open wait of a suspended run. */
export function waitCause(run: Situation, wait: Wait): Cause {
  const about = { since: wait.openedAt, until: wait.dueAt, ...(wait.site !== '' && { at: wait.site }) }
  if (wait.kind === 'sleep')
    return causeOf({
      ...about,
      code: 'SLEEP',
      message: sleepMessage(run, wait),
      change: 'It ends by itself.',
    })
  return wait.kind === 'input' ? inputCause(run, wait, about) : childCause(run, wait, about)
}

/** What is due is done at once, but for a stall of a coordinator, an outage, or a row that somebody has locked. */
const LATE = 'The coordinator has yet to come to it, as it is behind, was away or finds the run locked'

function sleepMessage({ now }: Situation, { dueAt }: Wait): string {
  if (dueAt === null) return 'It sleeps.'
  if (dueAt > now) return `It sleeps until ${timeText(dueAt)}.`
  return `Its sleep was over at ${timeText(dueAt)}. ${LATE}; then it goes on.`
}

function inputCause(run: Situation, wait: Wait, about: object): Cause {
  const inputId = wait.inputId!
  return causeOf({
    ...about,
    code: 'INPUT',
    message: inputMessage(run, wait),
    change: `Anybody who may start runs: \`windlass inputs respond ${inputId} '<answer as JSON>'\`.`,
    inputId,
  })
}

function inputMessage({ now }: Situation, { prompt, dueAt, hasDefault }: Wait): string {
  // On one line: it becomes part of a sentence.
  const line = (prompt ?? '').replace(/\s+/g, ' ').trim()
  const shown = line.length > PROMPT_SHOWN ? `${line.slice(0, PROMPT_SHOWN)}…` : line
  if (dueAt === null) return `It waits for an answer to: ${shown}`
  const then = hasDefault ? 'it goes on with the answer that its program has set for that' : 'the call fails'
  if (dueAt <= now)
    return (
      `Its time for an answer was over at ${timeText(dueAt)}. ${LATE}, and an answer is taken until it does; ` +
      `then ${then}. It asks: ${shown}`
    )
  return `It waits for an answer until ${timeText(dueAt)}; then ${then}. It asks: ${shown}`
}

function childCause(run: Situation, wait: Wait, about: object): Cause {
  const { childRunId, childStatus, childWorkflow } = wait
  if (childRunId === null)
    return causeOf({
      ...about,
      code: 'CHILD',
      message: `${run.id} waits for a run that it calls.`,
      change: 'It ends by itself.',
    })
  return causeOf({
    ...about,
    code: 'CHILD',
    message: `It waits for ${childRunId} of ${childWorkflow}, which is ${childStatus}.`,
    change: `Whatever lets that run end: \`windlass runs why ${childRunId}\`.`,
    childRunId,
  })
}

const NAMES = {
  input: ['answer', 'answers'],
  child: ['called run', 'called runs'],
  sleep: ['sleep', 'sleeps'],
} as const

/** `It waits for 1 answer and 3 called runs.` Undefined: one wait explains itself. */
export function waitsSummary(waits: readonly Wait[]): string | undefined {
  if (waits.length < 2) return undefined
  const kinds = (['input', 'child', 'sleep'] as const).filter((kind) => waits.some((wait) => wait.kind === kind))
  const parts = kinds.map((kind) => {
    const [one, many] = NAMES[kind]
    return counted(waits.filter((wait) => wait.kind === kind).length, one, many)
  })
  const last = parts.pop()
  return `It waits for ${parts.length > 0 ? `${parts.join(', ')} and ${last}` : last}.`
}
