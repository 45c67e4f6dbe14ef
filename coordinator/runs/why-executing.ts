import type { Cause } from '@windlass/shared/model/why.ts'
import type { Situation } from './store-why.ts'
import { causeOf, lengthening, timeText } from './why-texts.ts'

/** As agents call it in agent/checks: what programs say is written down before it is told, and that is not possible. */
const WRITES = 'spool-writes'

/** Why a run that its agent has begun is where it is. */
export function executing(run: Situation, since: Date): Cause {
  const heard = run.lastHeardAt === null ? '' : ` Its runner was last heard of at ${timeText(run.lastHeardAt)}.`
  const full = run.unready?.find(({ check }) => check === WRITES)
  const { ended, change } = full ? untold(full) : executes(run)
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

/** Whoever cancelled it would throw away what it may have done. */
const untold = ({ message }: { message: string }) => ({
  ended: ', or has ended: its agent cannot write down what it says',
  change:
    `Whoever keeps the machine of the runner (${WRITES}: ${message.replace(/\.$/, '')}). ` +
    'Then its agent tells what the program has done.',
})
