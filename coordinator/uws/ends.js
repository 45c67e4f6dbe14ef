/** Marks a response that goes out in chunks. */
const IN_CHUNKS = Symbol('in chunks')
/** What the socket has not taken of an answer. */
const REST = Symbol('rest')

/** Changes what all responses share. */
export function patchEnds(proto) {
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
    if (!isDone) new Rest(this, Buffer.from(body))
    return this
  }
}

class Rest {
  #isOver = false
  #held

  constructor(res, bytes) {
    res[REST] = this
    res.onWritable((offset) => {
      const [isTaken, isDone] = res.tryEnd(bytes.subarray(offset), bytes.byteLength)
      if (isDone) this.drop()
      else this.#held?.took()
      return isTaken
    })
    this.#held = res.onRest?.(bytes.byteLength, () => this.#isOver || res.close())
    // It may have been cut at once.
    if (this.#isOver) this.#held?.release()
  }

  /** Nothing of it lies here any more. */
  drop() {
    this.#isOver = true
    this.#held?.release()
  }
}
