import { createLog } from '@windlass/shared/log.ts'
import { groupCommit, type GroupCommitOptions } from '../../db/group-commit.ts'

const log = createLog({}, 'error')

/** One lane, batches of ten, answers that are twice the item; and the batches as they came. */
export function doubling(over: Partial<GroupCommitOptions<number, number>> = {}) {
  const batches: number[][] = []
  const commit = async (items: number[]) => {
    batches.push(items)
    return over.commit ? over.commit(items) : items.map((item) => item * 2)
  }
  const group = groupCommit<number, number>({ name: 'test', log, max: 10, lanes: 1, patienceMs: 300, ...over, commit })
  return {
    batches,
    add: (item: number) => group.add(item),
    /** With what takes it out while it waits, and whether its commit has begun. */
    addWaiting: (item: number) => {
      const waiting = { giveUp: (_error: Error) => {}, hasBegun: false, result: Promise.resolve(0) }
      waiting.result = group.add(item, (giveUp) => {
        waiting.giveUp = giveUp
        return () => (waiting.hasBegun = true)
      })
      return waiting
    },
    idle: () => group.idle(),
  }
}
