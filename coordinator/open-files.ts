import { open, readFile } from 'node:fs/promises'
import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import { pause } from '@windlass/shared/time.ts'

const LOOK_MS = 2000
/** Share of them from which on it is said. */
const MOST = 0.9
/** While that lasts it is said so often. */
const AGAIN_MS = 60_000

const ADVICE =
  'Without one there are no new connections, neither of clients and agents nor to the database, and /healthz does ' +
  'not answer. See what connects, or raise the limit: LimitNOFILE of its unit, `ulimit -n`.'

/**
 * Connections that nobody can accept bring no error that we would see. The log needs no descriptor: it can say why
 * nothing else goes on.
 */
export async function watchOpenFiles(log: Log, signal: AbortSignal): Promise<void> {
  const limit = await readLimit()
  let saidAt = -Infinity
  while (!signal.aborted) {
    const taken = await lowestFree().catch(() => 0)
    if (taken >= limit * MOST && performance.now() - saidAt >= AGAIN_MS) {
      saidAt = performance.now()
      log.warn('openFiles.few', { open: Math.min(taken, limit), limit, advice: ADVICE })
    }
    probe('openFiles.looked', { taken })
    await pause(LOOK_MS, signal)
  }
}

/** The system gives the lowest number that is free: all below it are taken. None is Infinity. */
async function lowestFree(): Promise<number> {
  try {
    const file = await open('/dev/null')
    const { fd } = file
    await file.close()
    return fd
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EMFILE' || code === 'ENFILE') return Infinity
    throw error
  }
}

/** Infinity where nobody says, or there is none: then it is said once there is no descriptor left. */
async function readLimit(): Promise<number> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  const [, soft] = /^Max open files +(\d+)/m.exec(limits) ?? []
  return soft === undefined ? Infinity : Number(soft)
}
