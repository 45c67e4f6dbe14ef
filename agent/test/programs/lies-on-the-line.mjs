import { writeSync } from 'node:fs'

const HEADER_BYTES = 13

/** A frame as the runtime writes it, with a payload that it would never write. */
function sendFrame(code, payload) {
  const frame = Buffer.alloc(HEADER_BYTES + Buffer.byteLength(payload))
  frame.writeUInt8(code.charCodeAt(0), 0)
  frame.writeUInt32LE(frame.length - HEADER_BYTES, 1)
  frame.writeDoubleLE(Number.NaN, 5)
  frame.write(payload, HEADER_BYTES)
  for (let sent = 0; sent < frame.length;) sent += writeSync(3, frame, sent)
}

const deep = (levels) => '['.repeat(levels) + ']'.repeat(levels)

const LIES = {
  'threw deep': () => sendFrame('T', `{"message":"boom","detail":{"d":${deep(200_000)}}}`),
  'threw large': () =>
    sendFrame('T', JSON.stringify({ message: 'm'.repeat(4e6), stack: 's'.repeat(4e6), detail: { d: 'd'.repeat(4e6) } })),
  'log deep': () => {
    sendFrame('l', `{"text":"x","fields":${deep(30_000)}}`)
    sendFrame('p', `{"name":"x","data":${deep(30_000)}}`)
  },
}

export function run({ lie }) {
  LIES[lie]()
  return 'honest'
}
