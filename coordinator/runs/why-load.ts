import type { RunId } from '@windlass/shared/ids.ts'
import type { Cause } from '@windlass/shared/model/why.ts'
import { stageOf } from '../engine/rules/groups.ts'
import type { Throttle } from '../engine/rules/holds.ts'
import type { Situation } from './store-why.ts'
import { causeOf, counted, lengthText, timeText } from './why-texts.ts'

export function throttleCause(run: Situation, until: Date, { key, limit, perMs }: Throttle): Cause {
  const apart = stageOf(key) === '' ? '' : ` with this \`input.${stageOf(key)}\``
  const turn = `its turn is at ${timeText(until)}`
  return causeOf({
    code: 'THROTTLED',
    message: `Its workflow lets ${counted(limit, 'run')}${apart} enter the queue within ${lengthText(perMs)}; ${turn}.`,
    since: run.queuedAt,
    until,
    change: 'It ends by itself: a run keeps its turn. Another `throttle` counts for runs of the version that has it.',
  })
}

export function debounceCause(run: Situation, until: Date, merged: number): Cause {
  const were = merged === 1 ? 'was' : 'were'
  const calls = merged === 0 ? 'none has come yet' : `${counted(merged, 'call')} ${were} merged into it`
  return causeOf({
    code: 'DEBOUNCED',
    message: `It waits for further calls until ${timeText(until)}, and takes the input of the last; ${calls}.`,
    since: run.queuedAt,
    until,
    change:
      'It ends by itself. Each further call puts it off by `wait`, to `maxWait` after the first call at the latest.',
  })
}

export function limitCause(run: Situation, runIds: RunId[]): Cause {
  const before = run.waitersAhead === 0 ? 'It is the next' : `${counted(run.waitersAhead, 'run')} before it`
  return causeOf({
    code: 'CONCURRENCY_LIMIT',
    message: `Its workflow limits \`concurrency\` to ${run.groupLimit}${apart(run)}, and ${underWay(run)}. ${before}.`,
    since: run.queuedAt,
    change: [
      'A run of the group that ends, is cancelled or comes to wait lets the next in.',
      'A higher limit counts for runs of the version that has it.',
    ].join(' '),
    runIds,
  })
}

/** Which of several limits it is. */
function apart({ waitsInGroup }: Situation): string {
  const field = stageOf(waitsInGroup ?? '')
  return field === '' ? '' : ` for each \`input.${field}\``
}

function underWay({ counted: all, reserved }: Situation): string {
  const active = all - reserved
  const text = `${counted(active, 'run')} of its group ${active === 1 ? 'is' : 'are'} under way`
  if (reserved === 0) return text
  const keep =
    reserved === 1 ? '1 more has its place there and waits' : `${reserved} more have their place there and wait`
  return `${text}, ${keep} for another limit`
}
