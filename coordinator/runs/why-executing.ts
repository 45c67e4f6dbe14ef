import type { Unready } from '@windlass/shared/model/runner.ts'
import type { Cause } from '@windlass/shared/model/why.ts'
import type { Situation } from './store-why.ts'
import { causeOf, lengthening, timeText } from './why-texts.ts'

/** As agents call them in agent/checks: what programs say is written down before it is told, and one of both fails. */
const UNTOLD: Partial<Record<string, string>> = {
  'spool-writes': 'write down what it says',
  'spool-reads': 'read what it has written down of it',
}

/** Why a run that its agent has begun is where it is. */
export function executing(run: Situation, since: Date): Cause {
  const heard = run.lastHeardAt === null ? '' : ` Its runner was last heard of at ${timeText(run.lastHeardAt)}.`
  const [found] = run.unready?.filter(({ check }) => UNTOLD[check] !== undefined) ?? []
  const { ended, change } = found ? untold(found) : executes(run)
  return causeOf({
    code: 'EXECUTING',
    message:
      `Its program executes on the runner ${run.runner}, attempt ${run.attempt}${ended}.` + heard + lengthening(run),
    since,
    change,
  })
}

const executes = ({ id }: Situation) => ({
  ended: '',
  change:
    `The program itself; \`windlass runs logs -f ${id}\` shows what it does, ` +
    `\`windlass runs cancel ${id}\` ends it.`,
})

/** No cancel is advised: it would throw away what the program may have done. */
const untold = ({ check, message }: Unready) => ({
  ended: `, or has ended: its agent cannot ${UNTOLD[check]}`,
  change:
    `Whoever keeps the machine of the runner (${check}: ${message.replace(/\.$/, '')}). ` +
    'Then its agent tells what the program has done.',
})
