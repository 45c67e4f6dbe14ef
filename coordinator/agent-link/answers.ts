import type { Applied } from '../engine/rules/batch.ts'
import type { Session } from './session.ts'

interface Answer {
  run: string
  epoch: number
  seq: number
}

/** The batches of one commit are answered in one frame of each kind. */
export function createAnswers(tell: Session['tell']): (kind: Applied['kind'], answer: Answer) => void {
  let gathered: Record<Applied['kind'], Answer[]> | undefined
  const flush = () => {
    const { ack: acks, stale, resume } = gathered!
    gathered = undefined
    if (acks.length > 0) tell({ t: 'ack', acks })
    if (stale.length > 0) tell({ t: 'stale', runs: stale.map(({ run, epoch }) => [run, epoch]) })
    if (resume.length > 0) tell({ t: 'resume', runs: resume })
  }
  return (kind, answer) => {
    if (!gathered) {
      gathered = { ack: [], stale: [], resume: [] }
      setImmediate(flush)
    }
    // Acknowledgements are told first: the agent may have removed then what it would be asked for.
    if (kind === 'ack' && gathered.resume.length > 0) gathered.resume = gathered.resume.filter(isOfOther(answer))
    gathered[kind].push(answer)
  }
}

function isOfOther({ run, epoch }: Answer): (answer: Answer) => boolean {
  return (answer) => answer.run !== run || answer.epoch !== epoch
}
