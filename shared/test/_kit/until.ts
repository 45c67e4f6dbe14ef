import { setTimeout as delay } from 'node:timers/promises'
import { type MomentName, type Moments, onMoment } from '../../probe.ts'

/** Deadline against endless waits; a busy machine may be a hundred times slower than an idle one. */
export const DEADLINE_MS = 60_000
/** Interval of polling. */
const LOOK_MS = 15

type Found<T> = T | undefined | null | false
type Check<T> = () => Found<T> | Promise<Found<T>>

interface Patience {
  ms?: number
  /** What is known about that which did not happen. */
  more?: () => string
}

const listeners = new Set<() => void>()

/** Says that a test's own side has changed, such as a fake that has heard a frame: a moment like the product's. */
export function announce(): void {
  for (const listener of listeners) listener()
}

/**
 * Looks now and again after each announced moment of this process, until the check gives something. What nobody
 * announces (files, other processes, a timer without a probe) is for `untilPolled`.
 */
export async function until<T>(what: string, check: Check<T>, patience: Patience = {}): Promise<T> {
  const { ms = DEADLINE_MS, more = () => '' } = patience
  const news = listenForNews(ms)
  try {
    do {
      const found = await check()
      if (found) return found
    } while (await news.next())
  } finally {
    news.stop()
  }
  const isTrue = Boolean(await check())
  const why = isTrue ? 'it is so by now, but nobody announced it: put a probe there, or use untilPolled' : more()
  throw new Error(`${what}: not within ${ms} ms. ${why}`)
}

/** Looks again and again: for what happens outside of this process or in the kernel, which nobody can announce. */
export async function untilPolled<T>(what: string, check: Check<T>, patience: Patience = {}): Promise<T> {
  const { ms = DEADLINE_MS, more = () => '' } = patience
  const end = performance.now() + ms
  for (;;) {
    const found = await check()
    if (found) return found
    if (performance.now() > end) throw new Error(`${what}: not within ${ms} ms. ${more()}`)
    await delay(LOOK_MS)
  }
}

/** Listens from now on: call it before the act that brings the moment, and wait for it afterwards. */
export function moment<K extends MomentName>(
  name: K,
  fits: (facts: Moments[K]) => boolean = () => true,
): Promise<Moments[K]> {
  const { promise, resolve, reject } = Promise.withResolvers<Moments[K]>()
  const stop = onMoment((each) => {
    if (each.name === name && fits(each.facts as Moments[K])) resolve(each.facts as Moments[K])
  })
  const timer = setTimeout(() => reject(new Error(`no ${name} within ${DEADLINE_MS} ms`)), DEADLINE_MS)
  // A test that has failed before it waits for this one has said why.
  timer.unref()
  promise.catch(() => {}).finally(() => (clearTimeout(timer), stop()))
  return promise
}

/** `next` resolves after the next moment, when the code that announced it has ended its turn; false: the time is up. */
function listenForNews(ms: number): { next(): Promise<boolean>; stop(): void } {
  let isNews = false
  let wake = (_isNews: boolean) => {}
  let turn: NodeJS.Immediate | undefined
  let isLate = false
  const look = () => {
    turn = undefined
    isNews = true
    wake(true)
  }
  const hear = () => (turn ??= setImmediate(look))
  const stopMoments = onMoment(hear)
  listeners.add(hear)
  const timer = setTimeout(() => {
    isLate = true
    wake(false)
  }, ms)
  return {
    async next() {
      const is = isNews || (!isLate && (await new Promise<boolean>((resolve) => (wake = resolve))))
      isNews = false
      return is && !isLate
    },
    stop() {
      clearTimeout(timer)
      clearImmediate(turn)
      stopMoments()
      listeners.delete(hear)
    },
  }
}
