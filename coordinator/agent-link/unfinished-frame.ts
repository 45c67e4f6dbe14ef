/** Until the next part of the same frame; one of ours takes 13 s over 5 KiB a second. */
const PART_MS = 60_000

/** What has come of a frame whose end has not. */
export class UnfinishedFrame {
  chars = 0
  #texts: string[] = []
  #late: NodeJS.Timeout | undefined

  add(text: string): void {
    this.#texts.push(text)
    this.chars += text.length
  }

  /** Calls when nothing more has come by then. */
  expectMore(onLate: () => void): void {
    clearTimeout(this.#late)
    this.#late = setTimeout(onLate, PART_MS).unref()
  }

  /** The parts, of which none are left here. */
  take(): string[] {
    clearTimeout(this.#late)
    const texts = this.#texts
    this.#texts = []
    this.chars = 0
    return texts
  }
}
