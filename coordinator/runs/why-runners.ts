import type { PoolSettings } from '@windlass/shared/model/pool.ts'
import type { Why } from '@windlass/shared/model/why.ts'
import { lacking } from '../matching/capable.ts'
import { type Needs, readNeeds } from '../matching/needs.ts'
import type { PoolRunner, Reserved } from './store-why.ts'
import { counted, lengthText, timeText } from './why-texts.ts'

/** A runner that is free asks again at least every half minute. */
const SILENT_MS = 60_000

/** Whose turn it is to do something about it. `unfit`: it could never take the run. `unready`: something on the machine is in the way. */
export type Kind = 'takes' | 'busy' | 'reserved' | 'closed' | 'unready' | 'revoked' | 'unfit' | 'away'

export type Verdict = Why['runners'][number] & { kind: Kind; missing: string[]; slots: number }

export interface Asked {
  needs: Needs
  settings: PoolSettings
  now: Date
  reserved: readonly Reserved[]
}

/** Whether a runner would take the run, and everything that keeps it from that; what lasts longest is said first. */
export function judgeRunner(runner: PoolRunner, asked: Asked): Verdict {
  const { id, name, slots, busy } = runner
  const carries = new Set([...runner.labels, ...asked.settings.labels])
  const reservation = asked.reserved.find(({ runnerId }) => runnerId === id)
  const missing = asked.needs.labels.filter((label) => !carries.has(label))
  const reasons: [Kind, string | undefined][] = [
    ['unfit', labelsText(missing)],
    ['unfit', sizeText(runner, asked.needs)],
    ['unfit', lacking(runner, asked.settings)],
    [runner.state === 'revoked' ? 'revoked' : 'closed', closedText(runner)],
    ['closed', quarantineText(runner, asked.now)],
    ['away', silenceText(runner, asked.now)],
    ['unready', unreadyText(runner)],
    ['busy', roomText(runner, asked.needs)],
    ['reserved', reservedText(reservation)],
  ]
  const given = reasons.filter((one): one is [Kind, string] => one[1] !== undefined)
  const about = { id, name, missing, slots }
  const own = reservation?.isOwn ? ['is kept free for this run'] : []
  if (given.length > 0) {
    const reason = cut([...given.map(([, text]) => text), ...own].join('; '))
    return { ...about, takes: false, kind: given[0]![0], reason }
  }
  const reason = [`would take it: asks for work, ${busy} of ${slots} slots taken`, ...own].join('; ')
  return { ...about, takes: true, kind: 'takes', reason }
}

/** An answer has as many of them as a pool has runners, and agents choose most of what is in them. */
const REASON_CHARS = 1000

const cut = (reason: string) =>
  reason.length <= REASON_CHARS ? reason : `${reason.slice(0, REASON_CHARS).toWellFormed()} …`

function reservedText(reservation: Reserved | undefined): string | undefined {
  if (!reservation || reservation.isOwn) return undefined
  const { slots } = readNeeds(reservation.needs)
  return `is kept free for ${reservation.runId}, which goes before it and needs ${slots} slots at once`
}

function labelsText(missing: readonly string[]): string | undefined {
  if (missing.length === 0) return undefined
  return `does not carry the ${missing.length === 1 ? 'label' : 'labels'} ${missing.map((label) => `\`${label}\``).join(', ')}`
}

function sizeText({ slots }: PoolRunner, needs: Needs): string | undefined {
  if (slots >= needs.slots) return undefined
  return `has ${counted(slots, 'slot')} in all, and the run needs ${needs.slots}`
}

const STATES = { cordoned: 'is cordoned', draining: 'is draining', revoked: 'is revoked' } as const

function closedText({ state, byKind, byName, since, reason }: PoolRunner): string | undefined {
  if (state === 'open') return undefined
  const by =
    byKind === null ? '' : ` by ${byKind === 'agent' ? 'its agent, which is being stopped,' : (byName ?? byKind)}`
  const why = reason === '' ? '' : ` (${reason})`
  const forGood = state === 'revoked' ? ', and gets nothing any more' : ''
  return `${STATES[state]}${by} since ${timeText(since)}${forGood}${why}`
}

function quarantineText({ quarantinedUntil, quarantineReason }: PoolRunner, now: Date): string | undefined {
  if (quarantinedUntil === null || quarantinedUntil <= now) return undefined
  return `is in quarantine until ${timeText(quarantinedUntil)}${quarantineReason ? `: ${quarantineReason}` : ''}`
}

function silenceText({ lastPollAt, lastHeartbeatAt, busy, slots }: PoolRunner, now: Date): string | undefined {
  const ago = (time: Date) => `${lengthText(now.getTime() - time.getTime())} ago, at ${timeText(time)}`
  const heardAt = Math.max(lastPollAt?.getTime() ?? 0, lastHeartbeatAt?.getTime() ?? 0)
  if (heardAt === 0) return 'has registered and was never heard of since'
  if (now.getTime() - heardAt > SILENT_MS) return `is offline: last heard of ${ago(new Date(heardAt))}`
  // One that is full does not ask.
  if (busy >= slots) return undefined
  if (lastPollAt === null) return 'is connected and has not asked for work yet'
  if (now.getTime() - lastPollAt.getTime() > SILENT_MS) return `is connected and last asked for work ${ago(lastPollAt)}`
  return undefined
}

function unreadyText({ unready, unreadyCount }: PoolRunner): string | undefined {
  if (unreadyCount === 0) return undefined
  const said = unready.map(({ check, message }) => `${check}: ${message.replace(/\.$/, '')}`)
  const more = unreadyCount > unready.length ? [`${unreadyCount - unready.length} more`] : []
  return `is not ready: ${[...said, ...more].join(', ')}`
}

function roomText({ busy, slots }: PoolRunner, needs: Needs): string | undefined {
  const free = Math.max(0, slots - busy)
  if (free >= needs.slots || slots < needs.slots) return undefined
  if (free === 0) return `has no free slot (${busy} of ${slots} taken)`
  return `has ${counted(free, 'free slot')} of ${slots}, and the run needs ${needs.slots}`
}
