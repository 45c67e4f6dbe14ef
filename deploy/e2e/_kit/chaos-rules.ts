import type { RunEvent } from '@windlass/shared/model/event.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import type { Entry } from '../programs/chaos/index.ts'

/** What Windlass says about a run when all is over. */
export interface Logged {
  run: Run
  events: readonly RunEvent[]
  /** Lines that the program was asked to log. */
  lines: number
}

/** Everything that is known about it. */
export interface Story extends Logged {
  /** What the program itself wrote down about its attempts. */
  diary: readonly Entry[]
}

const FINAL = ['run.completed', 'run.failed', 'run.cancelled']

/** What is wrong with the story; nothing when it is as it must be. */
export function brokenRules(story: Story): string[] {
  return [...brokenLog(story), ...diary(story)]
}

/** The same for a program that keeps no such diary. */
export function brokenLog(story: Logged): string[] {
  return [...cursors(story), ...ending(story), ...logs(story), ...attempts(story)]
}

function cursors({ events }: Logged): string[] {
  const found = events.findIndex((event, index) => event.cursor !== index + 1)
  return found === -1 ? [] : [`cursor ${events[found]!.cursor} stands at place ${found + 1}`]
}

function ending({ run, events }: Logged): string[] {
  const finals = events.filter((event) => FINAL.includes(event.type))
  const outputs = events.filter((event) => event.channel === 'output')
  const last = events.at(-1)?.type
  return [
    ...(finals.length === 1 ? [] : [`it ends ${finals.length} times`]),
    ...(last === `run.${run.status}` ? [] : [`its status is ${run.status}, its last event ${last}`]),
    ...(run.status === 'completed' ? [] : [`it is ${run.status}: ${run.error?.message}`]),
    ...(outputs.length === 1 ? [] : [`it has ${outputs.length} outputs`]),
  ]
}

/** Log lines by the attempt that wrote them: each attempt is one stretch of the log, from its `running` on. */
function logs({ run, events, lines }: Logged): string[] {
  const byAttempt = new Map<number, string[]>()
  let attempt = 0
  for (const event of events) {
    if (event.type === 'run.running') attempt = Number(event.data['attempt'])
    if (event.channel !== 'log') continue
    byAttempt.set(attempt, [...(byAttempt.get(attempt) ?? []), String(event.data['text'])])
  }
  const wrong = [...byAttempt].flatMap(([number, texts]) => {
    const at = texts.findIndex((text, index) => text !== `line ${index + 1}`)
    return at === -1 ? [] : [`attempt ${number} has "${texts[at]}" where line ${at + 1} belongs`]
  })
  const complete = byAttempt.get(run.attempt)?.length ?? 0
  return complete === lines ? wrong : [...wrong, `attempt ${run.attempt} has ${complete} of ${lines} lines`]
}

function attempts({ run, events }: Logged): string[] {
  const running = events.filter((event) => event.type === 'run.running').map((event) => Number(event.data['attempt']))
  const restarts = events.filter((event) => event.type === 'run.restarted').length
  return [
    ...(restarts === run.attempt - 1 ? [] : [`it restarted ${restarts} times and is at attempt ${run.attempt}`]),
    ...(running.every((attempt, index) => index === 0 || attempt > running[index - 1]!)
      ? []
      : [`attempts ran as ${running.join(', ')}`]),
  ]
}

/** Attempts begin once, in order, and only when no process of an earlier one is left. */
function diary({ run, diary: entries }: Story): string[] {
  const starts = entries.filter((entry) => entry.what === 'start')
  const disordered = entries.findIndex((entry, index) => index > 0 && entry.attempt < entries[index - 1]!.attempt)
  return [
    ...(new Set(starts.map((entry) => entry.attempt)).size === starts.length ? [] : ['an attempt began twice']),
    ...(disordered === -1 ? [] : [`attempt ${entries[disordered]!.attempt} was alive after a later one had begun`]),
    ...starts
      .filter((entry) => entry.living.length > 0)
      .map((entry) => `attempt ${entry.attempt} began beside ${entry.living.join(', ')}`),
    ...(entries.at(-1)?.attempt === run.attempt && entries.at(-1)?.what === 'end'
      ? []
      : ['its last attempt did not come to its end']),
  ]
}
