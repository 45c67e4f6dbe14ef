import { closeSync, fstatSync, openSync, readFileSync, readlinkSync } from 'node:fs'
import { bootId, isAlive, markOf, readOrNothing } from './os/process-id.ts'
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
  // An agent of before says only its number. One of an earlier boot of this machine has ended with it.
  if (isBefore || isHere) return isAlive(holder) ? 'alive' : 'dead'
  const { machine } = holder
  return machine && machine === me?.machine && holder.boot !== me.boot ? 'dead' : 'unseen'
}

/** A busy machine is late with some. */
export const TOUCHES_MISSED = 4
const LOOKS_A_TOUCH = 12
const LOOKS = TOUCHES_MISSED * LOOKS_A_TOUCH

export interface Look {
  state: 'alive' | 'dead' | 'unsure'
  holder: Holder | undefined
  /** Its process is one of those that can be seen from here. */
  isSeen: boolean
}

/** Takes a holder that is not a process here for dead. */
export function lookByNumber(file: string): Look {
  const holder = readMark(file)
  return { state: holder && isAlive(holder) ? 'alive' : 'dead', holder, isSeen: true }
}

/**
 * Looks at a lock until it is clear whether its holder lives. One that cannot be seen from here lives when it touches
 * its lock meanwhile. No clocks are compared, as they jump, and those of machines differ; looks are counted, as this
 * process may stand still for longer than the holder.
 */
export class LockWatch {
  readonly lookMs: number
  readonly #file: string
  readonly #me = thisHolder()
  #ino = 0n
  #mtimeNs = 0n
  #looks = 0

  constructor(file: string, touchMs: number) {
    this.#file = file
    this.lookMs = touchMs / LOOKS_A_TOUCH
  }

  look(): Look {
    const found = read(this.#file)
    const holder = found?.holder
    if (!holder) return { state: 'dead', holder, isSeen: true }
    const state = seen(holder, this.#me)
    const isSeen = state !== 'unseen'
    return { state: isSeen ? state : this.#watched(found), holder, isSeen }
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
  ino: bigint
  mtimeNs: bigint
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
    const { ino, mtimeNs } = fstatSync(fd, { bigint: true })
    return { holder: holderIn(readFileSync(fd, 'utf8')), ino, mtimeNs }
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
