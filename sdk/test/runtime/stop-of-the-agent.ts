import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { DEADLINE_MS } from '@windlass/shared/test/_kit/until.ts'
import type { CancelMessage, ProgramMessage } from '@windlass/shared/wire/program.ts'
import { ops, type Host } from './host-process.ts'

export const HANDOVER: CancelMessage = { t: 'cancel', why: 'handover', reason: '', graceMs: 600_000 }

export function wake(n: number): ProgramMessage {
  return { t: 'wake', completions: [{ n, state: 'done', result: 'null' }] }
}

/** Of this kind, all that was told of up to now. */
export const closed = (host: Host) =>
  ops(host).flatMap((op) => (op.op === 'close' ? [`${op.entry.kind} ${op.entry.name} ${op.state}`] : []))

/** As soon as the step is told of. */
export async function keep(host: Host, name: string): Promise<void> {
  for (;;) {
    const op = await host.nextOp()
    if (op.op !== 'close' || op.entry.name !== name) continue
    return host.send({ t: 'kept', count: ops(host).length })
  }
}

const ENDS = ['returned', 'threw', 'blocked']

/** Without a word about its end. */
export async function leaves(host: Host): Promise<void> {
  const deadline = delay(DEADLINE_MS, 'it stays', { ref: false })
  assert.equal(await Promise.race([host.exited, deadline]), 'SIGKILL')
  const names = host.seen.map(({ name }) => name)
  assert.ok(!names.some((name) => ENDS.includes(name)), names.join())
}

/** Something keeps the process until the signal aborts. */
export const UNTIL_ABORT = `() => new Promise((_, reject) => {
  const busy = setInterval(() => {}, 1000)
  const { signal } = context
  signal.addEventListener('abort', () => { clearInterval(busy); reject(signal.reason) })
  log('waits')
})`
