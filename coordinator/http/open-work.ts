/** Something that outlives the moment of its request, and how to bring it to an end when the server stops. */
export interface Open {
  end(): void
}

/** All that waits or streams, so that a stop can reach it. */
export class OpenWork {
  readonly #open = new Set<Open>()
  #ending = false

  /** What is added while the server stops is ended at once. */
  add(open: Open): void {
    this.#open.add(open)
    if (this.#ending) open.end()
  }

  delete(open: Open): void {
    this.#open.delete(open)
  }

  get isEnding(): boolean {
    return this.#ending
  }

  endAll(): void {
    this.#ending = true
    // Ending may delete from the set, which its iteration allows.
    for (const open of this.#open) open.end()
  }
}
