import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs'
import path from 'node:path'
import type { Random } from '@windlass/shared/test/_kit/seed.ts'
import { keyOf } from '../../../run/spool/held.ts'
import { parseLine } from '../../../run/spool/line.ts'

interface Away {
  file: string
  /** Nothing stands in its place: it is taken for lost after a while. */
  isLost: boolean
}

/** The files of a spool, and what becomes of them. */
export class SpoolFiles {
  readonly #root: string
  readonly #random: Random
  #copies = 0
  #away: Away[] = []

  constructor(root: string, random: Random) {
    this.#root = root
    this.#random = random
  }

  /** Of an agent, as `aSpool` takes it. */
  get folder(): string {
    return path.join(this.#root, String(this.#copies))
  }

  #names(): string[] {
    const names = readdirSync(path.join(this.folder, 'spool')).toSorted()
    return names.filter((name) => name.endsWith('.spool')).map((name) => path.join(this.folder, 'spool', name))
  }

  get areThere(): boolean {
    return this.#away.length === 0
  }

  get someAreLost(): boolean {
    return this.#away.some(({ isLost }) => isLost)
  }

  /** Numbers of those that somebody has to mend. */
  unreadable(): Set<number> {
    return new Set(this.#away.filter(({ isLost }) => !isLost).map(({ file }) => numberOf(file)))
  }

  /** Numbers of the entries of a placement that can be read. */
  entriesOf(key: string): Set<number> {
    const found = new Set<number>()
    const readable = this.#names().filter((file) => statSync(file).isFile())
    for (const text of readable.flatMap((file) => readFileSync(file, 'latin1').split('\n'))) {
      const line = parseLine(Buffer.from(text, 'latin1'))
      if (!line || keyOf(line.run, line.epoch) !== key) continue
      if (line.kind === 'forget') found.clear()
      if (line.kind === 'batch') for (let n = line.first; n <= line.last; n++) found.add(n)
    }
    return found
  }

  /** Answers whether it is lost; undefined where none was taken. */
  takeAway(mayBeLost: boolean): boolean | undefined {
    const readable = this.#names().filter((file) => statSync(file).isFile())
    // The last one is being written.
    const file = this.#random.pick(this.#random.next() < 0.2 ? readable : readable.slice(0, -1))
    if (!file || this.#away.length === 4) return undefined
    const isLost = mayBeLost && this.#random.next() < 0.6
    renameSync(file, `${file}.away`)
    if (!isLost) mkdirSync(file)
    this.#away.push({ file, isLost })
    return isLost
  }

  /** Those before `oldest` were removed meanwhile. */
  mend(oldest: number, which: 'all' | 'unreadable'): void {
    const mended = this.#away.filter(({ isLost }) => which === 'all' || !isLost)
    this.#away = this.#away.filter((each) => !mended.includes(each))
    for (const { file } of mended) {
      rmSync(file, { recursive: true, force: true })
      if (numberOf(file) < oldest) rmSync(`${file}.away`)
      else renameSync(`${file}.away`, file)
    }
  }

  /** As they are now, whatever the former agent writes yet into its own. Answers how to remove these. */
  copy(): () => void {
    const former = this.folder
    this.#copies += 1
    cpSync(former, this.folder, { recursive: true })
    return () => rmSync(former, { recursive: true })
  }

  /** What was written last never got to the disk. */
  losePower(): void {
    const last = this.#names().at(-1)
    const lost = this.#random.between(0, this.#random.pick([100, 3_000, 20_000]))
    if (last) truncateSync(last, Math.max(0, statSync(last).size - lost))
  }
}

function numberOf(file: string): number {
  return Number.parseInt(path.basename(file), 10)
}
