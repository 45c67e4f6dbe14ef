import { lengthText, note, paint, print, safe } from './terminal.ts'

// Shorter waits need no words.
const PATIENCE_MS = 300
const FRAME_MS = 100
// A log without a sign of life for longer looks stuck.
const REPEAT_MS = 30_000
const HINT_MS = 10_000
/** The spinner, the blank behind it, and the last column, which some terminals wrap at. */
const MARK_COLUMNS = 3
const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']

/**
 * What is being waited for, on standard error: a spinner that counts the time on a terminal, elsewhere a plain line
 * that comes again every 30 s. Nothing at all when the wait is short, or with `--json`.
 */
export class Progress {
  private readonly isQuiet: boolean
  private readonly isDrawn = process.stderr.isTTY
  private text: string | undefined
  private hint: string | undefined
  private since = 0
  private frame = 0
  /** A line that is there for good says the same. */
  private isSaid = false
  private shown = false
  private timer: NodeJS.Timeout | undefined

  constructor(isQuiet: boolean) {
    this.isQuiet = isQuiet
  }

  /**
   * Begins to wait for something; the same words go on counting. The hint is given when it takes long. `isSaid`: a line
   * has just told it, so that a pipe is told no sooner than the wait has lasted.
   */
  wait(text: string, hint?: string, isSaid = false): void {
    if (this.isQuiet) return
    if (this.text === text) {
      this.isSaid ||= isSaid
      return
    }
    this.end()
    this.text = text
    this.isSaid = isSaid
    this.hint = hint
    this.since = performance.now()
    this.timer = setTimeout(() => this.tick(), PATIENCE_MS)
    this.timer.unref()
  }

  /** Other words for a wait that goes on, such as figures that count down. A pipe gets none of them. */
  update(text: string): void {
    if (this.isQuiet || !this.isDrawn) return
    if (this.text === undefined) this.wait(text)
    else this.text = text
  }

  /** Puts a line of standard error above the spinner. */
  note(line: string): void {
    this.above(() => note(line))
  }

  /** The same for standard output, which may be the same terminal. */
  print(line: string): void {
    this.above(() => print(line))
  }

  private above(write: () => void): void {
    this.clear()
    write()
    if (this.isDrawn && this.text !== undefined && this.frame > 0) this.draw()
  }

  end(): void {
    clearTimeout(this.timer)
    this.clear()
    this.text = undefined
    this.frame = 0
  }

  private tick(): void {
    this.frame++
    this.giveHint()
    if (this.isDrawn) this.draw()
    else if (this.frame > 1 || !this.isSaid) note(this.line())
    this.timer = setTimeout(() => this.tick(), this.isDrawn ? FRAME_MS : REPEAT_MS)
    this.timer.unref()
  }

  private giveHint(): void {
    if (this.hint === undefined || performance.now() - this.since < HINT_MS) return
    const { hint } = this
    this.hint = undefined
    this.note(hint)
  }

  private draw(): void {
    this.clear()
    // A line that wraps could not be rewritten: only its last row would be cleared.
    const line = Array.from(safe(this.line(), process.stderr)).slice(0, (process.stderr.columns || 80) - MARK_COLUMNS)
    process.stderr.write(`${paint('cyan', FRAMES[this.frame % FRAMES.length] ?? '')} ${line.join('')}`)
    this.shown = true
  }

  private line(): string {
    const waited = performance.now() - this.since
    return waited < 1000 ? `${this.text}` : `${this.text}, ${lengthText(waited)}`
  }

  private clear(): void {
    if (!this.shown) return
    process.stderr.write('\r\u001b[2K')
    this.shown = false
  }
}

/** Waits for a promise under such words. */
export async function during<T>(progress: Progress, text: string, work: Promise<T>): Promise<T> {
  progress.wait(text)
  try {
    return await work
  } finally {
    progress.end()
  }
}
