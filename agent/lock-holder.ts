import { closeSync, fstatSync, openSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { bootId, isAlive, markOf, readOrNothing, uptimeMs } from './os/process-id.ts'
import type { ProcessMark } from './os/process-id.ts'

/** Who has a lock. Another container has other numbers for its processes, and another machine has others too. */
export interface Holder extends ProcessMark {
  boot?: string
  /** Its pid namespace. */
  namespace?: string
  /** Name of the machine, which stays over its boots; not in a container, whose image may say the same everywhere. */
  machine?: string
}

export function thisHolder(): Holder | undefined {
  const mark = markOf(process.pid)
  const namespace = pidNamespace()
  const machine = namespace === OF_THE_MACHINE ? readOrNothing('/etc/machine-id')?.trim() : undefined
  return mark && { ...mark, boot: bootId(), namespace, ...(machine && { machine }) }
}

/** The kernel gives the first one of a machine the same number everywhere. */
const OF_THE_MACHINE = 'pid:[4026531836]'

function pidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    // There is no /proc, as on macOS, or it is not ours to read.
    return ''
  }
}

/** Whether it lives, as far as that can be seen from here. */
function seen(holder: Holder, me: Holder | undefined): 'alive' | 'dead' | 'unseen' {
  const isBefore = holder.namespace === undefined
  const isHere = holder.boot === me?.boot && holder.namespace === me?.namespace
  // An agent of before says only its number.
  if (isBefore || isHere) return isAlive(holder) ? 'alive' : 'dead'
  return 'unseen'
}

/** It has ended with that boot, if it is of this machine: machines of one template may have the same name. */
function isOfEarlierBoot(holder: Holder, me: Holder | undefined): boolean {
  return Boolean(holder.machine) && holder.machine === me?.machine && holder.boot !== me?.boot
}

/** A busy machine is late with some. */
export const TOUCHES_MISSED = 4
const LOOKS_A_TOUCH = 12
const LOOKS = TOUCHES_MISSED * LOOKS_A_TOUCH

export interface Look {
  state: 'alive' | 'dead' | 'unsure' | 'missing'
  holder: Holder | undefined
  /** Its process is one of those that can be seen from here. */
  isSeen: boolean
  /** Tells the lock from another one that gets its name later. */
  lock: string
}

const MISSING: Look = { state: 'missing', holder: undefined, isSeen: true, lock: '' }

/** Takes a holder that is not a process here for dead. */
export function lookByNumber(file: string): Look {
  const found = read(file)
  if (!found) return MISSING
  const { holder, lock } = found
  return { state: holder && isAlive(holder) ? 'alive' : 'dead', holder, isSeen: true, lock }
}

/** Which lock has that name; empty where none has. */
export const lockAt = (file: string): string => read(file)?.lock ?? ''

/**
 * Looks at a lock until it is clear whether its holder lives. One that cannot be seen from here lives when it touches
 * its lock meanwhile. No clocks of machines are compared, as they jump and differ; looks are counted, as this process
 * may stand still for longer than the holder.
 */
export class LockWatch {
  readonly lookMs: number
  readonly #file: string
  readonly #missedMs: number
  readonly #me = thisHolder()
  #bootedAtMs: number | undefined
  #ino = 0n
  #mtimeNs = 0n
  #looks = 0

  constructor(file: string, touchMs: number) {
    this.#file = file
    this.lookMs = touchMs / LOOKS_A_TOUCH
    this.#missedMs = TOUCHES_MISSED * touchMs
  }

  /** `fresh` is a file that was just made beside the lock. */
  look(fresh: string): Look {
    const found = read(this.#file)
    if (!found) return MISSING
    const { holder, lock } = found
    if (!holder) return { state: 'dead', holder, isSeen: true, lock }
    const state = seen(holder, this.#me)
    if (state !== 'unseen') return { state, holder, isSeen: true, lock }
    const isGone = isOfEarlierBoot(holder, this.#me) && this.#isOlderThanBoot(found, fresh)
    return { state: isGone ? 'dead' : this.#watched(found), holder, isSeen: false, lock }
  }

  /**
   * Was it touched last before this machine's start, and so long ago that a living holder had touched it again? Each
   * touch sets the time of change by the clock of the file system, and so does the making of `fresh`: our own clock is
   * not asked.
   */
  #isOlderThanBoot({ changedAtMs }: Found, fresh: string): boolean {
    const sinceBootMs = uptimeMs()
    if (sinceBootMs === undefined) return false
    this.#bootedAtMs ??= changeOf(fresh) - sinceBootMs
    const silentMs = this.#bootedAtMs + sinceBootMs - changedAtMs
    return changedAtMs < this.#bootedAtMs && silentMs > this.#missedMs
  }

  #watched({ ino, mtimeNs }: Found): Look['state'] {
    const isOther = ino !== this.#ino
    if (!isOther && mtimeNs !== this.#mtimeNs) return 'alive'
    this.#looks = isOther ? 0 : this.#looks + 1
    this.#ino = ino
    this.#mtimeNs = mtimeNs
    return this.#looks >= LOOKS ? 'dead' : 'unsure'
  }
}

interface Found {
  holder: Holder | undefined
  lock: string
  ino: bigint
  mtimeNs: bigint
  changedAtMs: number
}

/** -Infinity where there is none, which nothing is older than. */
function changeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.ctimeMs ?? -Infinity
}

/** Opened, since NFS asks the server then, and answers from memory otherwise. */
function read(file: string): Found | undefined {
  let fd: number
  try {
    fd = openSync(file, 'r')
  } catch (error) {
    if (['ENOENT', 'ESTALE', 'EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
  try {
    const { ino, mtimeNs, ctimeMs } = fstatSync(fd, { bigint: true })
    const text = readFileSync(fd, 'utf8')
    // The number of a file is given again when that one is gone.
    return { holder: holderIn(text), lock: `${ino} ${text}`, ino, mtimeNs, changedAtMs: Number(ctimeMs) }
  } finally {
    closeSync(fd)
  }
}

/** Returns undefined when the file is missing, or is not the mark of a process. */
export function readMark(file: string): Holder | undefined {
  return holderIn(readOrNothing(file) ?? '')
}

function holderIn(text: string): Holder | undefined {
  try {
    const holder = JSON.parse(text || 'null') as Partial<Holder> | null
    if (!Number.isInteger(holder?.pid) || typeof holder?.started !== 'string') return undefined
    return holder as Holder
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
