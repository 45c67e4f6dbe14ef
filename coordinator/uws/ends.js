/** Marks a response that goes out in chunks. */
const IN_CHUNKS = Symbol('in chunks')
/** What the socket has not taken of an answer. */
const REST = Symbol('rest')
/** µWS closes a connection 8 to 12 s after its last try to send. */
const AGAIN_MS = 3000

/** Changes what all responses share. `underLentCork` writes without a cork, or answers false. */
export function patchEnds(proto, underLentCork) {
  const { end, write, onAborted } = proto
  proto.write = function (chunk) {
    this[IN_CHUNKS] = true
    return write.call(this, chunk)
  }
  proto.onAborted = function (callback) {
    return onAborted.call(this, () => {
      this[REST]?.drop()
      callback()
    })
  }
  /**
   * µWS keeps what the socket does not take, without a limit, and counts the response as done: it serves the next
   * request of a connection, whose answer it keeps too. By `tryEnd` it takes what the socket takes, and the response is
   * not done until that is all. If another request comes before, µWS ends the connection.
   */
  proto.end = function (body, close) {
    const bytes = body === undefined ? 0 : Buffer.byteLength(body)
    if (bytes === 0 || close || this[IN_CHUNKS]) return end.call(this, body, close)
    const [, isDone] = this.tryEnd(body, bytes)
    if (!isDone) new Rest(this, Buffer.from(body), underLentCork)
    return this
  }
}

class Rest {
  #isOver = false
  #res
  #bytes
  #held
  #trying

  constructor(res, bytes, underLentCork) {
    this.#res = res
    this.#bytes = bytes
    res[REST] = this
    res.onWritable((offset) => this.#send(offset))
    this.#held = res.onRest?.(bytes.byteLength, () => this.#isOver || res.close())
    if (!this.#held) return
    this.#trying = setInterval(() => this.#tryAgain(underLentCork), AGAIN_MS)
    // It may have been cut at once.
    if (this.#isOver) this.drop()
  }

  /** Nothing of it lies here any more. */
  drop() {
    this.#isOver = true
    clearInterval(this.#trying)
    this.#held?.release()
  }

  #send(offset) {
    const [isTaken, isDone] = this.#res.tryEnd(this.#bytes.subarray(offset), this.#bytes.byteLength)
    if (isDone) this.drop()
    else if (this.#res.getWriteOffset() > offset) this.#held?.took()
    return isTaken
  }

  /**
   * The kernel tells of room when a third of its buffer is free. That may be more than a slow reader takes before µWS
   * closes the connection. A try finds what room there is, and begins that time anew. In a cork of its own it would
   * take a short rest for sent that the kernel has no room for.
   */
  #tryAgain(underLentCork) {
    const send = () => this.#send(this.#res.getWriteOffset())
    if (!underLentCork(this.#res.cork, this.#res, send)) this.#res.cork(send)
  }
}
