import assert from 'node:assert/strict'
import type { Random } from '@windlass/shared/test/_kit/seed.ts'
import type { CoordinatorFrame, Entry, Placement } from '@windlass/shared/wire/agent.ts'
import { createUpload, type Upload } from '../../../link/upload.ts'
import { giveUpGap, obey } from '../../../loops/control.ts'
import { createAgentRuns } from '../../../run/agent-runs.ts'
import { type Held, keyOf } from '../../../run/spool/held.ts'
import type { Spool } from '../../../run/spool/spool.ts'
import { aSpool } from '../a-spool.ts'
import { Connection } from './connection.ts'
import { FakeDatabase } from './database.ts'
import { SpoolFiles } from './files.ts'
import type { Kind } from './kinds.ts'
import { holdReads, type HeldReads } from './reads.ts'

/** A placement, and what its program has said. */
export interface Program {
  run: string
  epoch: number
  /** Numbers from 1, then END. */
  said: string[]
  isEnded: boolean
  isPaused: boolean
  /** By what some of it may be gone. */
  risks: Set<'database' | 'file' | 'power'>
  isGivenUp: boolean
  /** It is nobody's any more. */
  isDropped: boolean
}

/** An agent's spool and upload, with the verbs of the real agent, between programs and a database that a test moves. */
export class UploadWorld {
  readonly random: Random
  readonly kind: Kind
  readonly db: FakeDatabase
  readonly connection: Connection
  readonly files: SpoolFiles
  /** By their keys; those that are not over. */
  readonly placements = new Map<string, Program>()
  spool!: Awaited<ReturnType<typeof aSpool>>
  reads!: HeldReads
  #upload!: Upload
  #killed: Placement[] = []
  #epochs = 0
  /** What an assertion has said in the middle of the upload, which copes with errors. */
  #failure: Error | undefined

  constructor(root: string, random: Random, kind: Kind) {
    this.random = random
    this.kind = kind
    this.db = new FakeDatabase(random)
    this.connection = new Connection(kind, this.db)
    this.files = new SpoolFiles(root, random)
  }

  async start(): Promise<void> {
    const { runBytes, totalBytes, memoryBytes, frameChars, ...sizes } = this.kind
    const spool = await aSpool(this.files.folder, { runBytes, totalBytes, sizes })
    this.spool = spool
    this.reads = holdReads(spool, this.random)
    const isReady = () => this.connection.isWelcome && this.spool === spool
    this.#upload = createUpload({
      spool,
      memoryBytes,
      sizes,
      log: spool.log,
      onGap: (held) => this.#checked(() => this.#gap(held)),
      link: {
        get isReady() {
          return isReady()
        },
        frameChars,
        drop: (reason) => this.#checked(() => assert.fail(reason)),
        sendEntries: (text) => (isReady() ? this.#checked(() => this.#send(text)) : undefined),
      },
    })
  }

  #checked<T>(act: () => T): T {
    try {
      return act()
    } catch (error) {
      this.#failure ??= error as Error
      throw error
    }
  }

  /** Until nothing moves by itself. */
  async settle(): Promise<void> {
    await this.reads.settle()
    if (this.#failure) throw this.#failure
  }

  program({ run, epoch }: Pick<Program, 'run' | 'epoch'>): Program | undefined {
    return this.placements.get(keyOf(run, epoch))
  }

  held({ run, epoch }: Pick<Program, 'run' | 'epoch'>): Held | undefined {
    return this.spool.find(run, epoch)
  }

  // What programs do.

  open(): void {
    const { random, kind, db } = this
    const run = `run_${random.between(1, kind.runs)}`
    const epoch = kind.isNamedAgain ? random.between(1, 2) : (this.#epochs += 1)
    const isNew = !this.program({ run, epoch }) && !this.held({ run, epoch })
    const mayBe = isNew && (!kind.isNamedAgain || this.connection.isSilentOn(run))
    if (this.placements.size >= kind.runs || !mayBe) return
    this.spool.open([[run, epoch]])
    db.give(keyOf(run, epoch))
    const risks: Program['risks'] = new Set(this.files.someAreLost ? ['file'] : [])
    const program = { run, epoch, said: [], isEnded: false, isPaused: false, risks, isGivenUp: false, isDropped: false }
    this.placements.set(keyOf(run, epoch), program)
  }

  say(program: Program, count: number, chars: number): void {
    if (program.isEnded || program.isDropped || (program.isPaused && this.random.next() < 0.9)) return
    const entries = Array.from({ length: count }, (): Entry => {
      const text = String(program.said.push(String(program.said.length + 1))).padEnd(chars)
      return ['e', 1, this.random.next() < 0.9 ? 'log.stdout' : 'some.event', JSON.stringify({ text })]
    })
    this.#append(program, entries)
  }

  end(program: Program): void {
    if (program.isEnded || program.isDropped) return
    program.isEnded = true
    program.said.push('END')
    this.#append(program, [['end', 1, { how: 'exited', exitCode: 3 }, 0]])
  }

  #append(program: Program, entries: Entry[]): void {
    const texts = [...this.held(program)!.gathered, ...entries.map((entry) => JSON.stringify(entry))]
    this.connection.expect(200 + texts.join(',').length)
    const pausing = this.spool.append(program.run, program.epoch, entries)
    program.isPaused = pausing !== undefined
    void pausing?.then(() => (program.isPaused = false))
  }

  // What becomes of the connection.

  dial(): void {
    if (!this.connection.isDialled) this.connection.open(this.spool.holds())
  }

  cut(): void {
    if (!this.connection.isDialled) return
    this.connection.cut(this.random.between(0, this.random.pick([3, 30])))
    this.#upload.stop()
  }

  #send(text: string): Promise<void> | undefined {
    const sending = this.connection.send(text)
    return this.random.next() < 0.5 ? sending : undefined
  }

  hear(): boolean {
    const frame = this.db.answer()
    if (frame) this.#obey(frame)
    return frame !== undefined
  }

  #obey(frame: CoordinatorFrame): void {
    this.connection.isWelcome ||= frame.t === 'welcome'
    this.connection.isAskedAgain ||= frame.t === 'resume'
    const { spool } = this
    const before = spool.lines.length
    const killed = frame.t === 'welcome' ? [...this.#killed] : []
    obey(this.#deps(), frame)
    for (const { name, run, epoch } of spool.lines.slice(before))
      if (name === 'spool.set-back') this.#setBack(run as string, epoch as number)
    for (const [run, epoch] of killed) {
      const program = this.program({ run, epoch })
      if (!program || program.isEnded || !this.held(program)) continue
      program.isEnded = true
      program.said.push('END')
    }
  }

  #deps(): Parameters<typeof obey>[0] {
    const nothing = () => undefined
    const { spool } = this
    return {
      spool,
      upload: this.#upload,
      log: spool.log,
      killed: this.#killed,
      agentRuns: createAgentRuns(),
      settings: {},
      start: { welcomed: () => Promise.resolve() },
      beats: { bell: { ring: nothing } },
      claimBell: { ring: nothing },
    } as unknown as Parameters<typeof obey>[0]
  }

  #setBack(run: string, epoch: number): void {
    const program = this.program({ run, epoch })
    // One that was given up for a gap is set back once more where a commit under way brought more than was known then.
    const hasLost = program?.risks.has('power') || program?.isGivenUp
    assert.ok(program && hasLost, `${run} was set back, and its agent had lost nothing`)
    program.isGivenUp = program.isEnded = true
  }

  #gap(held: Held): void {
    const program = this.program(held)
    const key = keyOf(held.run, held.epoch)
    const missing = held.sent + 1
    const isThere = this.db.count(key) >= missing || this.connection.brings(held, missing)
    const facts = `gap of ${key}: ${missing} of ${held.acked}..${held.written}, with ${this.db.count(key)} committed`
    assert.ok(program && program.risks.size > 0, `${facts}: nothing was lost`)
    if (!program.risks.has('file')) {
      // A database that has forgotten it may get it again from a commit that was under way when it said so.
      assert.ok(!isThere || this.kind.forgets, `${facts}: it is there, or on its way`)
      assert.ok(!this.files.entriesOf(key).has(missing), `${facts}: it stands in the files`)
    }
    program.isGivenUp = program.isEnded = true
    // Its end has the number of an entry that is there: the database waits for the end of the lease.
    if (isThere) program.risks.add('database')
    giveUpGap(this.#deps(), held)
  }

  // What goes wrong.

  drop(program: Program): void {
    program.isDropped = program.isEnded = true
    this.db.drop(program.run, program.epoch, this.connection.isDialled && this.random.next() < 0.7)
  }

  setBackDatabase(): void {
    for (const [key, program] of this.placements) {
      const count = this.db.count(key)
      if (this.random.next() < 0.6 || program.isDropped || program.isGivenUp || count === 0 || !this.held(program))
        continue
      this.db.setBack(key, this.random.between(0, count - 1))
      program.risks.add('database')
    }
  }

  takeFileAway(): void {
    if (this.files.takeAway(this.kind.files === 'lost'))
      for (const { risks } of this.placements.values()) risks.add('file')
  }

  mendFiles(which: 'all' | 'unreadable' = 'all'): void {
    this.files.mend(this.spool.reader.oldest().segment, which)
  }

  /** Another agent finds what this one has written; after a loss of power less of it. */
  async restart(how: 'stop' | 'kill' | 'power'): Promise<void> {
    if (how === 'power') while (this.connection.arrive() || this.db.commit()) continue
    this.cut()
    this.mendFiles()
    const removeFormer = how === 'stop' ? () => undefined : this.files.copy()
    this.spool.close()
    removeFormer()
    if (how === 'power') this.files.losePower()
    await this.start()
    await this.settle()
    const isTakenBack = how !== 'power' && this.random.next() < 0.5
    this.#killed = isTakenBack ? [] : unended(this.spool)
    if (how !== 'stop') for (const program of this.placements.values()) this.#recover(program, how)
  }

  /** What was only in memory is said again, where the program lives. */
  #recover(program: Program, how: 'kill' | 'power'): void {
    const key = keyOf(program.run, program.epoch)
    const held = this.held(program)
    program.isPaused = false
    if (program.isDropped || program.isGivenUp || (!held && this.db.isOver(key))) return
    if (!held) {
      assert.equal(how, 'power', `${key} is forgotten`)
      return this.drop(program)
    }
    const count = this.db.count(key)
    program.said.length = Math.max(Math.min(held.written, program.said.length), count)
    program.isEnded = program.said.at(-1) === 'END' || count > held.written
    if (count <= held.written) assert.equal(held.isEnded, program.isEnded, `${key} has ended`)
    if (how === 'power') program.risks.add('power')
  }

  close(): void {
    this.cut()
    this.spool.close()
  }
}

function unended(spool: Spool): Placement[] {
  const open = spool.held().filter(({ isEnded }) => !isEnded)
  return open.map(({ run, epoch }) => [run, epoch] as const)
}
