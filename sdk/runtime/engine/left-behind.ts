import type { Call, Scope } from './call.ts'

// Steps may be named after the items of a loop.
const MOST_WARNINGS = 20
const MOST_NAMED = 3

const WHY =
  'Should this process be given up or lost, nobody makes such a call again, or does what follows from it: a step ' +
  'that has its result is not executed any more. Await calls inside of the step, or make them outside of it.'

/**
 * Warns once of each step that leaves calls behind: a replay would do nothing about them. Sleeps and questions do not
 * count, since the loser of a race is left behind by intent; what is called after one of them does.
 */
export interface LeftBehind {
  /** A call that is not recorded. */
  isNew(call: Call): void
  /** The function of a step has returned. `isSafe`: the journal gets to know what the call has come to. */
  returned(scope: Scope, isSafe: (call: Call) => boolean): void
}

export function createLeftBehind(warn: (text: string) => void): LeftBehind {
  const warned = new Set<string>()

  function warnOf(step: Call, what: string): void {
    if (warned.size >= MOST_WARNINGS || warned.has(step.name)) return
    warned.add(step.name)
    warn(`Step ${JSON.stringify(step.name)} ${what}. ${WHY}`)
  }

  return {
    isNew(call) {
      const { within } = call
      if (within?.hasReturned && counts(call)) warnOf(within.call, `had ended when it called ${named(call)}`)
    },
    returned(scope, isSafe) {
      scope.hasReturned = true
      const left = [...scope.unsettled].filter((call) => !isSafe(call))
      if (left.length === 0) return
      const calls = left.length === 1 ? 'a call that it had begun was' : `${left.length} calls that it had begun were`
      warnOf(scope.call, `ended while ${calls} under way: ${listOf(left)}`)
    },
  }
}

/** Whether it is lost when nobody is left that waits for it. */
export const counts = ({ kind }: Call) => kind === 'step' || kind === 'child'

function listOf(calls: readonly Call[]): string {
  const names = calls.slice(0, MOST_NAMED).map(named).join(', ')
  return calls.length > MOST_NAMED ? `${names} and ${calls.length - MOST_NAMED} more` : names
}

const named = ({ kind, name }: Call) => `${kind === 'child' ? 'workflow' : kind} ${JSON.stringify(name)}`
