import type { Random } from '@windlass/shared/test/_kit/seed.ts'
import type { CoordinatorFrame, Entry, EntryBatch, Placement } from '@windlass/shared/wire/agent.ts'
import { keyOf } from '../../../run/spool/held.ts'

interface Committed {
  entries: Entry[]
  /** Others have the run, or nobody. */
  isDropped: boolean
}

interface Answer {
  run: string
  epoch: number
  seq: number
}

/** The far end: commits what arrives, some batches at once, and answers as the coordinator does. */
export class FakeDatabase {
  readonly #random: Random
  readonly #runs = new Map<string, Committed>()
  #waiting: { connection: number; batch: EntryBatch; chars: number }[] = []
  /** On its way to the agent. */
  #answers: CoordinatorFrame[] = []
  #connection = 0

  constructor(random: Random) {
    this.#random = random
  }

  give(key: string): void {
    this.#runs.set(key, { entries: [], isDropped: false })
  }

  count(key: string): number {
    return this.#runs.get(key)?.entries.length ?? 0
  }

  /** What programs have said, END for the end, and numbers for so many lines that were left out. */
  texts(key: string): (string | number)[] {
    return (this.#runs.get(key)?.entries ?? []).map((entry) => {
      if (entry[0] !== 'e') return 'END'
      const data = JSON.parse(entry[3]) as { text: string; events: number }
      return entry[2] === 'log.gap' ? data.events : data.text.trimEnd()
    })
  }

  isOver(key: string): boolean {
    const committed = this.#runs.get(key)
    return !committed || committed.isDropped || committed.entries.at(-1)?.[0] === 'end'
  }

  /** Nothing of the run is on its way in either direction. */
  isSilentOn(run: string): boolean {
    return !this.#waiting.some(({ batch }) => batch.run === run) && !JSON.stringify(this.#answers).includes(`"${run}"`)
  }

  get isSilent(): boolean {
    return this.#waiting.length === 0 && this.#answers.length === 0
  }

  drop(run: string, epoch: number, isAnnounced: boolean): void {
    this.#runs.get(keyOf(run, epoch))!.isDropped = true
    if (isAnnounced) this.#answers.push({ t: 'stale', runs: [[run, epoch]] })
  }

  /** Loses all but the first entries. */
  setBack(key: string, count: number): void {
    this.#runs.get(key)!.entries.length = count
  }

  hello(connection: number, holds: readonly Placement[]): void {
    this.#connection = connection
    const isOver = ([run, epoch]: Placement) => this.isOver(keyOf(run, epoch))
    const held = holds.filter((each) => !isOver(each))
    const resume = held.map(([run, epoch]) => ({ run, epoch, seq: this.count(keyOf(run, epoch)) }))
    const settings = {} as Extract<CoordinatorFrame, { t: 'welcome' }>['settings']
    this.#answers.push({ t: 'welcome', cluster: '', settings, resume, stale: holds.filter(isOver), cancel: [] })
  }

  /** The connection is gone. Of what has arrived all may be committed yet, or some. */
  cut(): void {
    this.#connection = 0
    this.#answers = []
    this.#waiting.length = this.#random.pick([this.#waiting.length, this.#random.between(0, this.#waiting.length)])
  }

  take(connection: number, text: string): void {
    const { batches } = JSON.parse(text) as { batches: EntryBatch[] }
    for (const batch of batches) this.#waiting.push({ connection, batch, chars: text.length / batches.length })
  }

  /** Over this connection, and not committed. */
  waiting(): { batches: EntryBatch[]; chars: number } {
    const own = this.#waiting.filter(({ connection }) => connection === this.#connection)
    return { batches: own.map(({ batch }) => batch), chars: own.reduce((sum, { chars }) => sum + chars, 0) }
  }

  /** False when there was nothing to commit. */
  commit(): boolean {
    const taken = this.#waiting.splice(0, this.#random.between(1, 20))
    const answers: Record<'ack' | 'stale' | 'resume', Answer[]> = { ack: [], stale: [], resume: [] }
    for (const { connection, batch } of taken) {
      const [kind, seq] = this.#apply(batch)
      const { run, epoch } = batch
      if (kind === 'ack') answers.resume = answers.resume.filter((each) => each.run !== run || each.epoch !== epoch)
      if (connection === this.#connection) answers[kind].push({ run, epoch, seq })
    }
    const { ack: acks, stale, resume } = answers
    if (acks.length > 0) this.#answers.push({ t: 'ack', acks })
    if (stale.length > 0) this.#answers.push({ t: 'stale', runs: stale.map(({ run, epoch }) => [run, epoch] as const) })
    if (resume.length > 0) this.#answers.push({ t: 'resume', runs: resume })
    return taken.length > 0
  }

  #apply({ run, epoch, first, entries }: EntryBatch): ['ack' | 'stale' | 'resume', number] {
    const key = keyOf(run, epoch)
    const count = this.count(key)
    if (this.isOver(key)) return first + entries.length - 1 <= count ? ['ack', count] : ['stale', 0]
    if (first > count + 1) return ['resume', count]
    this.#runs.get(key)!.entries.push(...entries.slice(count + 1 - first))
    return ['ack', this.count(key)]
  }

  /** What the agent hears next. */
  answer(): CoordinatorFrame | undefined {
    return this.#answers.shift()
  }
}
