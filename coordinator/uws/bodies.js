// `onDataV2` reports how much of the body is still to come; all that hyper-express reads of it is whether that is zero.
const MORE_TO_COME = (1n << 64n) - 1n

/** Marks a response whose socket is paused. */
const PAUSED = Symbol('paused')
/** The body that comes to a response. */
const BODY = Symbol('body')

/** Pieces of a body after which its connection ends when they are tiny. They take 16 ms. */
const MOST_TINY = 4096
/** Pieces that are shorter on average are tiny. */
const TINY_BYTES = 64
/** Pieces of any size that a connection may bring in one turn of the event loop: a quarter of a second. */
const MOST_IN_TURN = 65_536
const BLOCK_BYTES = 16 * 1024

/** Changes what all responses share. */
export function patchBodies(proto) {
  const { pause, resume, onAborted } = proto
  proto.pause = function () {
    this[PAUSED] = true
    return pause.call(this)
  }
  proto.resume = function () {
    this[PAUSED] = false
    return resume.call(this)
  }
  proto.onAborted = function (callback) {
    return onAborted.call(this, () => {
      this[BODY]?.drop()
      callback()
    })
  }
  const onDataV2 =
    proto.onDataV2 ??
    function (callback) {
      return this.onData((chunk, isLast) => callback(chunk, isLast ? 0n : MORE_TO_COME))
    }
  proto.onDataV2 = function (callback) {
    const body = (this[BODY] = new Body(this, callback))
    return onDataV2.call(this, (chunk, left) => body.take(chunk, left))
  }
}

/**
 * µWS calls for each chunk of a body, at 4 µs a call: 87,000 times for one read that brings chunks of a byte. It reads
 * on in the same turn of the event loop, paused or not, for as long as each read is full. So calls are counted, not
 * bytes. The first piece of a turn goes on at once, and those behind it are joined: everything above pays for each.
 *
 * A piece that comes alone in its turn costs what a packet costs and is not counted: a slow sender may send bytes.
 */
class Body {
  #res
  #callback
  #isOver = false
  #isInTurn = false
  #ofTurn = 0
  #pieces = 0
  #bytes = 0
  #block
  #used = 0

  constructor(res, callback) {
    this.#res = res
    this.#callback = callback
  }

  take(chunk, left) {
    if (this.#isOver) return
    if (left === 0n) this.#end(chunk)
    else if (this.#isInTurn) this.#addToTurn(chunk)
    else {
      this.#isInTurn = true
      setImmediate(() => this.#endTurn())
      this.#callback(chunk, left)
    }
  }

  /** Nobody is to hear of it any more. */
  drop() {
    this.#isOver = true
    this.#block = undefined
    this.#used = 0
  }

  #end(chunk) {
    this.#flush()
    // Whoever got the rest may have closed the connection.
    if (this.#isOver) return
    this.drop()
    // A pause may come after the rest of the body was read from the socket. hyper-express resumes no body that is
    // complete, so the socket would rest for good, and the next request on its connection would never be read.
    if (this.#res[PAUSED]) this.#res.resume()
    this.#callback(chunk, 0n)
  }

  #addToTurn(chunk) {
    this.#ofTurn++
    this.#pieces++
    this.#bytes += chunk.byteLength
    // Closed within its call, µWS neither calls for the rest of what it has read nor reads on.
    if (this.#isTooMuch()) this.#res.close()
    else this.#join(chunk)
  }

  #isTooMuch() {
    const areTiny = this.#bytes < this.#pieces * TINY_BYTES
    return (areTiny && this.#pieces > MOST_TINY) || this.#ofTurn > MOST_IN_TURN
  }

  #join(chunk) {
    const { byteLength } = chunk
    if (this.#used + byteLength > BLOCK_BYTES) this.#flush()
    if (this.#isOver) return
    if (byteLength > BLOCK_BYTES) this.#callback(chunk, MORE_TO_COME)
    else {
      this.#block ??= new Uint8Array(BLOCK_BYTES)
      this.#block.set(new Uint8Array(chunk), this.#used)
      this.#used += byteLength
    }
  }

  #flush() {
    if (this.#used === 0) return
    const chunk = this.#block.buffer.slice(0, this.#used)
    this.#used = 0
    this.#callback(chunk, MORE_TO_COME)
  }

  #endTurn() {
    this.#isInTurn = false
    this.#ofTurn = 0
    this.#flush()
    this.#block = undefined
  }
}
