import type { Db } from '../../db/client.ts'

export interface CountedDb {
  db: Db
  /** Statements so far. */
  looks(): number
  /** The most that were under way together. */
  mostAtOnce(): number
}

/** Of the statements that are waited for by `await`. */
export function countedDb(of: Db): CountedDb {
  let looks = 0
  let underWay = 0
  let most = 0

  function begin(): () => void {
    looks++
    most = Math.max(most, ++underWay)
    return () => void underWay--
  }

  const counted = (...args: Parameters<Db>) => {
    const query = of(...args)
    const then = query.then.bind(query)
    // Only what is sent is waited for: parts of statements are not.
    // oxlint-disable-next-line unicorn/no-thenable -- it has one
    query.then = (onDone, onError) => {
      const end = begin()
      void then(end, end)
      return then(onDone, onError)
    }
    return query
  }
  return { db: counted as unknown as Db, looks: () => looks, mostAtOnce: () => most }
}
