import { Fault } from '@windlass/shared/errors.ts'

/** Bounds what small bodies take in memory: as values until they are answered, and as texts that wait for that. */
export interface SmallBodies {
  /**
   * Undefined: it may become values at once. Else what to wait for; rejects when there is no room in time, and with the
   * reason of `gone`. Throws RATE_LIMITED when too much of the org waits.
   */
  hold(body: SmallBody): Promise<void> | undefined
}

interface SmallBody {
  orgId: string
  /** Of the text. */
  bytes: number
  /** Of memory, as values: not asked for where the text finds no room. */
  memory: () => number
  /** Asked for where it waits. */
  gone: () => AbortSignal
  /** Given what is to be called when its request is answered. */
  onHeld: (release: () => void) => void
}

/** Of one org, and of all. */
interface Most {
  org: number
  all: number
}

interface Options {
  values: Most
  texts: Most
  patienceMs: number
}

interface Waiting {
  memory: number
  begin: () => void
}

interface Sums {
  values: number
  texts: number
}

interface Org extends Sums {
  /** In the order of their turns. */
  line: Set<Waiting>
}

const RETRY_AFTER_MS = 1000
const TOO_MUCH = 'Other requests of this org are under way, and their bodies take too much memory; send fewer at once.'
const TOO_LONG = 'Other requests are under way, and have taken long. Send it again in a second.'

/**
 * An org may have what it is allowed, and no more than is left of what all have: whoever comes finds room, however many
 * orgs have filled theirs. The first body of an org has room in any case.
 */
export function createSmallBodies({ values, texts, patienceMs }: Options): SmallBodies {
  const orgs = new Map<string, Org>()
  /** Those of which some wait. */
  const waiting = new Set<Org>()
  const total = { values: 0, texts: 0 }
  const left = (most: Most, own: number, all: number) => Math.min(most.org, most.all - all) - own

  function orgOf(id: string): Org {
    const org = orgs.get(id) ?? { values: 0, texts: 0, line: new Set<Waiting>() }
    orgs.set(id, org)
    return org
  }

  const hasRoom = (org: Org, memory: number) => org.values === 0 || memory <= left(values, org.values, total.values)

  function count(id: string, more: Partial<Sums>): void {
    const org = orgOf(id)
    for (const sums of [org, total]) add(sums, more)
    if (org.values === 0 && org.line.size === 0) orgs.delete(id)
  }

  function sit({ orgId, onHeld }: SmallBody, memory: number): void {
    count(orgId, { values: memory })
    let isHeld = true
    onHeld(() => {
      if (!isHeld) return
      isHeld = false
      count(orgId, { values: -memory })
      letIn()
    })
  }

  function letIn(): void {
    for (const org of waiting) {
      for (const first of org.line) {
        if (!hasRoom(org, first.memory)) break
        first.begin()
      }
    }
  }

  function wait(body: SmallBody, org: Org, memory: number): Promise<void> {
    const { orgId, bytes } = body
    const one: Waiting = { memory, begin: () => {} }
    const line: Line = {
      join(begin) {
        one.begin = () => (sit(body, memory), begin())
        waiting.add(org)
        org.line.add(one)
        count(orgId, { texts: bytes })
      },
      leave() {
        org.line.delete(one)
        if (org.line.size === 0) waiting.delete(org)
        count(orgId, { texts: -bytes })
      },
    }
    // What stands behind one that leaves may be smaller.
    return standIn(line, body.gone(), patienceMs).catch((error: unknown) => {
      letIn()
      throw error
    })
  }

  return {
    hold(body) {
      const org = orgOf(body.orgId)
      const hasTextRoom = body.bytes <= left(texts, org.texts, total.texts)
      // Before it is looked at any further: whoever sends too much is to cost little.
      if (org.line.size > 0 && !hasTextRoom) throw tooMuch(texts.org)
      const memory = body.memory()
      if (org.line.size > 0 || !hasRoom(org, memory)) {
        if (!hasTextRoom) throw tooMuch(texts.org)
        return wait(body, org, memory)
      }
      sit(body, memory)
      return undefined
    },
  }
}

function add(sums: Sums, { values = 0, texts = 0 }: Partial<Sums>): void {
  sums.values += values
  sums.texts += texts
}

interface Line {
  /** With what is to be called when its turn has come. */
  join: (begin: () => void) => void
  leave: () => void
}

function standIn(line: Line, gone: AbortSignal, patienceMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    gone.throwIfAborted()
    const leave = () => {
      clearTimeout(late)
      gone.removeEventListener('abort', giveUp)
      line.leave()
    }
    const giveUp = () => {
      leave()
      reject(gone.aborted ? (gone.reason as Error) : new Fault('UNAVAILABLE', {}, TOO_LONG))
    }
    const late = setTimeout(giveUp, patienceMs)
    gone.addEventListener('abort', giveUp)
    line.join(() => {
      leave()
      resolve()
    })
  })
}

function tooMuch(limitBytes: number): Fault {
  const detail = { scope: 'org_bodies', limitBytes, retryAfterMs: RETRY_AFTER_MS }
  return new Fault('RATE_LIMITED', detail, TOO_MUCH)
}
