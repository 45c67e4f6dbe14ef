import type { Random } from '@windlass/shared/test/_kit/seed.ts'
import type { Spool } from '../../../run/spool/spool.ts'

/** Of before a test holds the clock. */
const later = setImmediate
const turn = () => new Promise<void>((resolve) => void later(resolve))

/** Answers to reads of files, which a test gives one by one, so that the same seed has the same order of all. */
export interface HeldReads {
  /** Gives the next one. False when nobody has asked. */
  give(): Promise<boolean>
  /** Until whoever runs has done what it could do. */
  settle(): Promise<void>
}

export function holdReads({ reader }: Pick<Spool, 'reader'>, random: Random): HeldReads {
  const asked: (() => Promise<void>)[] = []
  const underWay = new Set<Promise<unknown>>()
  const read = reader.read.bind(reader)
  reader.read = (from) => {
    // Read when it is asked for or when the answer is given: files come and go in between.
    const early = random.next() < 0.5 ? read(from) : undefined
    if (early) underWay.add(early.finally(() => underWay.clear()))
    return new Promise((resolve) => asked.push(async () => resolve(await (early ?? read(from)))))
  }
  return {
    async give() {
      const next = asked.shift()
      await next?.()
      return next !== undefined
    },
    async settle() {
      await Promise.all(underWay)
      for (let n = 0; n < 2; n++) {
        await turn()
        if (underWay.size > 0) n = -1
        await Promise.all(underWay)
      }
    },
  }
}
