import { probe } from '@windlass/shared/probe.ts'
import type { Entry, Placement } from '@windlass/shared/wire/agent.ts'
import { writeTrouble } from '../../disk-full.ts'
import { FlushTimer } from './flush-timer.ts'
import { gapEntry, isLog, widened } from './gap.ts'
import { begunLineOf, byClockOf, gapOf, gatheredOf, gatheredWritten } from './held-lines.ts'
import { headOf, markWritten, nextMarkOf, openLines } from './held-lines.ts'
import type { Gathered } from './held-lines.ts'
import { heldFrom, keyOf, newHeld, placementOf, takeAcked } from './held.ts'
import type { FrameMark, Held, Written } from './held.ts'
import { forgetLine, openLine } from './line.ts'
import { NeededFiles } from './needed-files.ts'
import { recoverSpool } from './recover.ts'
import { SpoolReader } from './reader.ts'
import { openSegments, type Segments } from './segments.ts'
import type { Spool, SpoolOptions } from './spool-types.ts'
import { thisStore } from './store-mark.ts'
import type { Position } from './position.ts'
import { createThrottle, type Throttle } from './throttle.ts'

export type { Spool, SpoolOptions } from './spool-types.ts'

const GATHER_CHARS = 256 * 1024
/** As which a short entry counts: a batch goes as a whole, and each of its entries costs the coordinator something. */
const LEAST_ENTRY_CHARS = 256
const RETRY_MS = 500
/** How much of what is left out may be unknown after kill -9. */
const GAP_NOTE_MS = 1_000

export async function openSpool(options: SpoolOptions): Promise<Spool> {
  const known = new Map<string, Held>()
  let store = ''
  const head = () => [...known.values()].map((held) => headOf(held, store)).join('')
  const segments = openSegments(options.folder, head, options.log, options.sizes)
  store = thisStore(options.folder)
  const needed = new NeededFiles(segments)
  await recoverSpool(segments, { known, needed, store }, options.log)
  return new SpoolInFiles(options, { known, needed, segments, store })
}

/** What is read back at a start. */
interface Recovered {
  known: Map<string, Held>
  needed: NeededFiles
  segments: Segments
  /** See `thisStore`. */
  store: string
}

/** Entries are gathered for some milliseconds and written together; what is acknowledged falls away, file by file. */
class SpoolInFiles implements Spool {
  readonly #options: SpoolOptions
  readonly #known: Map<string, Held>
  readonly #needed: NeededFiles
  readonly #segments: Segments
  readonly #store: string
  readonly #throttle: Throttle
  readonly reader: SpoolReader
  /** Something was gathered for them. */
  readonly #dirty = new Set<Held>()
  /** More was left out of them than the files say. */
  readonly #widening = new Set<Held>()
  /** Their programs say nothing at present, and how far these were heard is not in the files. */
  readonly #unmarked = new Set<Held>()
  #gatheredChars = 0
  #forgotten = ''
  /** Why the disk refused what was to be written last. */
  #refusal: unknown
  #listener: (written: Written[]) => void = () => undefined
  readonly #timer = new FlushTimer(this.flush.bind(this), () => this.#throttle.total())

  constructor(options: SpoolOptions, { known, needed, segments, store }: Recovered) {
    this.#options = options
    this.#known = known
    this.#needed = needed
    this.#segments = segments
    this.#store = store
    this.reader = new SpoolReader({ ...options, segments })
    const total = [...known.values()].reduce((sum, { backlog }) => sum + backlog, 0)
    this.#throttle = createThrottle({ ...options, total })
    this.#throttle.onRelief((held) => {
      this.#closeGap(held)
      this.#flushSoon(false)
    })
  }

  open(placements: readonly Placement[]): void {
    const fresh = placements.filter(([run, epoch]) => !this.find(run, epoch))
    // Of a placement that had the same numbers before, what was forgotten stands first.
    const at = this.#segments.append(this.#forgotten + openLines(fresh, this.#store))
    this.#forgotten = ''
    const isUnbegun = this.#store !== ''
    for (const [run, epoch] of fresh) this.#known.set(keyOf(run, epoch), { ...newHeld(run, epoch, at), isUnbegun })
  }

  begin(run: string, epoch: number): void {
    const held = this.find(run, epoch)
    if (!held?.isUnbegun) return
    this.#segments.append(begunLineOf(held))
    held.isUnbegun = false
  }

  append(run: string, epoch: number, entries: readonly Entry[]): Promise<void> | undefined {
    const held = this.find(run, epoch)
    if (!held || held.isEnded) return undefined
    let isUrgent = false
    for (const entry of entries) {
      if (held.isSetBack && entry[0] !== 'end') continue
      if (this.#throttle.isCut(held) && isLog(entry)) {
        this.#leaveOut(held, entry)
        continue
      }
      this.#closeGap(held)
      this.#gather(held, entry)
      held.isEnded = entry[0] === 'end'
      isUrgent ||= entry[0] !== 'e'
      if (this.#gatheredChars >= GATHER_CHARS && !this.#throttle.isDiskRefusing()) this.flush()
    }
    if (this.#dirty.has(held)) this.#flushSoon(isUrgent)
    return this.#throttle.pauseFor(held)
  }

  #gather(held: Held, entry: Entry): void {
    const text = JSON.stringify(byClockOf(this.#options.offsetMs?.() ?? 0, entry))
    held.gathered.push(text)
    this.#throttle.add(held, text.length)
    this.#gatheredChars += Math.max(text.length, LEAST_ENTRY_CHARS)
    this.#dirty.add(held)
  }

  /** What was left out stands in front of what follows it. */
  #closeGap(held: Held): void {
    const { gap } = held
    if (!gap) return
    held.gap = undefined
    this.#widening.delete(held)
    this.#options.log.warn('run.log.gap', { run: held.run, epoch: held.epoch, ...gap })
    this.#gather(held, gapEntry(gap))
  }

  #leaveOut(held: Held, entry: Entry): void {
    held.gap = widened(held.gap, entry)
    if (held.mark) held.nextMark = { ...held.mark, frames: null }
    this.#widening.add(held)
    if (this.#throttle.isDiskRefusing()) return
    this.#timer.within(held.gap.events === 1 ? 0 : GAP_NOTE_MS)
  }

  mark(run: string, epoch: number, mark: Omit<FrameMark, 'seq'>): void {
    const held = this.find(run, epoch)
    // What was left out would be told again, and then be there twice: once as itself, once as a gap.
    const frames = held?.gap ? null : mark.frames
    if (!held || held.isSetBack) return
    held.nextMark = { ...mark, frames, seq: held.written + held.gathered.length }
    if (frames === null && typeof held.mark?.frames !== 'number') return
    // It goes along with that, unless what follows is not told again. Else a program may be silent for hours.
    if (held.gathered.length > 0) return frames === null ? this.#flushSoon(true) : undefined
    this.#unmarked.add(held)
    this.#flushSoon(frames === null)
  }

  #flushSoon(isUrgent: boolean): void {
    if (!this.#throttle.isDiskRefusing()) this.#timer.soon(isUrgent)
  }

  flush(): void {
    this.#timer.clear()
    if (!this.#hasNews()) return
    const gaps = [...this.#widening].map(gapOf)
    const quiet = [...this.#unmarked].filter((held) => !this.#dirty.has(held))
    const written = [...this.#dirty].map(gatheredOf)
    const lines = [this.#forgotten, ...written.map((each) => each.line), ...quiet.map(nextMarkOf), ...gaps].join('')
    let at: Position
    try {
      at = this.#segments.append(lines)
    } catch (error) {
      return this.#waitForDisk(error)
    }
    this.#settleWritten(written, quiet, at)
    this.#listener(written.map((each) => ({ ...each, at })))
    // Last, for those who go on now have something to say.
    if (this.#throttle.diskWorks()) this.#options.log('spool.disk.works')
    probe('spool.written', { placements: written.length })
  }

  #hasNews(): boolean {
    return this.#dirty.size > 0 || this.#widening.size > 0 || this.#unmarked.size > 0 || this.#forgotten !== ''
  }

  #settleWritten(written: readonly Gathered[], quiet: readonly Held[], at: Position): void {
    this.#timer.flushed()
    this.#forgotten = ''
    this.#gatheredChars = 0
    this.#dirty.clear()
    this.#widening.clear()
    this.#unmarked.clear()
    for (const held of quiet) this.#throttle.add(held, markWritten(held))
    for (const gathered of written) {
      if (gathered.held.parts.at(-1)?.segment !== at.segment) this.#needed.need(at.segment)
      this.#throttle.add(gathered.held, gatheredWritten(gathered, at.segment))
    }
  }

  /** Programs are held back and nothing is lost meanwhile: what is gathered stays in memory. */
  #waitForDisk(error: unknown): void {
    const { folder, log } = this.#options
    this.#refusal = error
    if (this.#throttle.diskRefuses()) log.error('spool.disk.refuses', { folder, error })
    this.#timer.within(RETRY_MS)
  }

  ack(run: string, epoch: number, seq: number): void {
    const held = this.find(run, epoch)
    if (!held) return
    const { bytes, segments: freed } = takeAcked(held, seq)
    this.#throttle.freed(bytes)
    this.#needed.free(freed)
    if (held.isEnded && held.gathered.length === 0 && held.acked >= held.written) this.#forget(held)
    probe('spool.acked', { run, epoch, seq })
  }

  forget(run: string, epoch: number): void {
    const held = this.find(run, epoch)
    if (held) this.#forget(held)
  }

  setBack(run: string, epoch: number, seq: number): void {
    const held = this.find(run, epoch)
    if (!held) return
    this.#forget(held)
    this.#forgotten += openLine(run, epoch, { next: seq + 1 })
    this.#known.set(keyOf(run, epoch), heldFrom(run, epoch, { seq, segment: this.#segments.turnOver() }))
  }

  #forget(held: Held): void {
    this.#known.delete(keyOf(held.run, held.epoch))
    this.#dirty.delete(held)
    this.#widening.delete(held)
    this.#unmarked.delete(held)
    held.gathered = []
    this.#forgotten += forgetLine(held.run, held.epoch)
    this.#throttle.drop(held)
    this.#needed.free(held.parts.splice(0).map((part) => part.segment))
  }

  find(run: string, epoch: number): Held | undefined {
    return this.#known.get(keyOf(run, epoch))
  }

  held(): Held[] {
    return [...this.#known.values()]
  }

  holds(): Placement[] {
    return this.held().map(placementOf)
  }

  onWritten(listener: (written: Written[]) => void): void {
    this.#listener = listener
  }

  stats(): { placements: number; unacknowledged: number } {
    return { placements: this.#known.size, unacknowledged: this.#throttle.total() }
  }

  trouble(): string | undefined {
    if (!this.#throttle.isDiskRefusing()) return undefined
    return writeTrouble(this.#refusal, this.#options.folder)
  }

  close(): void {
    this.flush()
    this.#timer.clear()
    this.#throttle.close()
    this.#segments.close()
  }
}
