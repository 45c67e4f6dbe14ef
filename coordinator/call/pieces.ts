/** A larger block would stand for a small body. */
const LEAST_BLOCK_BYTES = 1024
const MOST_BLOCK_BYTES = 64 * 1024

/**
 * A body as it comes, in blocks. An object for each piece takes 200 to 400 bytes, which no limit counts, also where the
 * pieces are of a byte. Blocks take up to 64 KiB more than they hold, and never more than twice as much but for the
 * first KiB.
 */
export class Pieces {
  bytes = 0
  #blocks: Buffer[] = []
  #block = Buffer.alloc(0)
  /** Bytes of the last block. */
  #used = 0

  add(piece: Uint8Array): void {
    let rest = piece
    while (rest.byteLength > 0) {
      if (this.#used === this.#block.length) this.#begin()
      const part = rest.subarray(0, this.#block.length - this.#used)
      this.#block.set(part, this.#used)
      this.#used += part.byteLength
      this.bytes += part.byteLength
      rest = rest.subarray(part.byteLength)
    }
  }

  #begin(): void {
    const size = Math.min(MOST_BLOCK_BYTES, Math.max(LEAST_BLOCK_BYTES, this.bytes))
    // Not from the pool, of which a small block would hold all.
    this.#block = Buffer.allocUnsafeSlow(size)
    this.#blocks.push(this.#block)
    this.#used = 0
  }

  whole(): Buffer {
    return Buffer.concat(this.#blocks, this.bytes)
  }
}
