import { writeSync } from 'node:fs'

const HEADER_BYTES = 13

/** A frame as the runtime writes it, with a payload that it would never write. */
function encode(code, payload) {
  const frame = Buffer.alloc(HEADER_BYTES + Buffer.byteLength(payload))
  frame.writeUInt8(code.charCodeAt(0), 0)
  frame.writeUInt32LE(frame.length - HEADER_BYTES, 1)
  frame.writeDoubleLE(Number.NaN, 5)
  frame.write(payload, HEADER_BYTES)
  return frame
}

function write(bytes) {
  for (let sent = 0; sent < bytes.length;) sent += writeSync(3, bytes, sent)
}

const sendFrame = (code, payload) => write(encode(code, payload))

const deep = (levels) => '['.repeat(levels) + ']'.repeat(levels)

const wide = (names) => Object.fromEntries(Array.from({ length: names }, (_, n) => [`k${n}`, {}]))

const LIES = {
  'threw deep': () => sendFrame('T', `{"message":"boom","detail":{"d":${deep(20_000)}}}`),
  'threw large': () =>
    sendFrame('T', JSON.stringify({ message: 'm'.repeat(8e4), stack: 's'.repeat(8e4), detail: { d: 'd'.repeat(8e4) } })),
  'log deep': () => {
    sendFrame('l', `{"text":"x","fields":${deep(20_000)}}`)
    sendFrame('p', `{"name":"x","data":${deep(20_000)}}`)
  },
  blocked: () => sendFrame('B', JSON.stringify({ expected: 'a step', received: 'a sleep', at: '' })),
  'log wide': () => sendFrame('l', JSON.stringify({ text: 'x', fields: wide(15_000) })),
  'log large': () => sendFrame('l', JSON.stringify({ text: 'x', fields: wide(200_000) })),
  'threw wide': () => sendFrame('T', JSON.stringify({ message: 'boom', detail: wide(15_000) })),
  'returned large': () => sendFrame('R', JSON.stringify('x'.repeat(2e6))),
  'returned twice': () => {
    sendFrame('R', '1')
    sendFrame('R', '2')
  },
  'line and rejoin': () => {
    const variables = { PADDING: 'x'.repeat(7.9e6) }
    const rejoin = encode('J', JSON.stringify({ first: 0, next: 0, heard: 0, variables }))
    write(Buffer.concat([encode('o', 'a line\n'), rejoin.subarray(0, HEADER_BYTES)]))
    write(rejoin.subarray(HEADER_BYTES))
  },
  'line and begun': () => write(Buffer.concat([encode('o', 'a line\n'), encode('b', '')])),
  'line and ready': () => write(Buffer.concat([encode('o', 'a line\n'), encode('r', '')])),
  'line and nonsense': () => write(Buffer.concat([encode('o', 'a line\n'), encode('k', 'nonsense')])),
}

export function run({ lie }) {
  LIES[lie]()
  return 'honest'
}
