import { aBundle } from './bundle.ts'
import type { Packed } from './bundle.ts'

/** Lets another process speak to the agent, and keeps its own runtime out of it by standing still meanwhile. */
const STANDS_STILL = `
import { spawnSync } from 'node:child_process'
import path from 'node:path'
export function run(input, given) {
  const file = path.join(import.meta.dirname, 'hand-made.mjs')
  const env = { ...process.env, INPUT: JSON.stringify({ input, attempt: given.attempt }) }
  const { status } = spawnSync(process.execPath, [file], { stdio: ['ignore', 1, 2, 3, 4], env })
  return { status }
}`

const SPEAKS = `
import fs from 'node:fs'
import net from 'node:net'
const CODE = { out: 'o', err: 'e', phase: 'p', returned: 'R', threw: 'T', journal: 'j', park: 'k', live: 'L', blocked: 'B' }
const { input, attempt } = JSON.parse(process.env.INPUT)
function frame(name, payload = '') {
  const text = Buffer.from(payload)
  const head = Buffer.alloc(13)
  head.writeUInt8(CODE[name].charCodeAt(0), 0)
  head.writeUInt32LE(text.length, 1)
  head.writeDoubleLE(Date.now(), 5)
  const bytes = Buffer.concat([head, text])
  for (let at = 0; at < bytes.length; ) at += fs.writeSync(3, bytes, at)
}
let held = Buffer.alloc(0)
let inbox = []
let arrived = () => {}
let heard = 0
const messages = new net.Socket({ fd: 4, readable: true, writable: false })
messages.on('end', () => process.exit(1))
messages.on('data', (chunk) => {
  held = Buffer.concat([held, chunk])
  while (held.length >= 4 && held.length >= 4 + held.readUInt32LE(0)) {
    const end = 4 + held.readUInt32LE(0)
    inbox.push(JSON.parse(held.toString('utf8', 4, end)))
    held = held.subarray(end)
  }
  arrived()
})
/** The next message of this kind; others before it are dropped. */
async function message(kind, fits = () => true) {
  for (;;) {
    while (inbox.length > 0) {
      const first = inbox.shift()
      if (first.t === 'wake') heard += 1
      if (first.t === kind && fits(first)) return first
    }
    await new Promise((resolve) => (arrived = resolve))
  }
}
const say = (text) => frame('out', text + '\\n')
const journal = (op) => frame('journal', JSON.stringify(op))
const open = (n) => journal({ op: 'open', entry: { n, position: n, parent: '', kind: 'sleep', name: '', hash: 'h', occurrence: n, args: '', site: '' }, ask: { for: 'sleep', ms: 60000 } })
const close = (n) => journal({ op: 'close', entry: { n, position: n, parent: '', kind: 'step', name: 's', hash: 'h', occurrence: n, args: '', site: '' }, state: 'done', result: '1' })
let order = 0
const deliver = (...numbers) => journal({ op: 'deliver', list: numbers.map((n) => [++order, n, n, 1]) })
/** After all that it has taken out of its inbox, if nothing else is said. */
const park = (waitsFor = 'sleep', after = heard) => frame('park', JSON.stringify({ waitsFor, heard: after }))
const kept = (count) => message('kept', (each) => each.count >= count)
/** Opens a wait, parks, and hands on what it is woken with. */
async function waitFor(n) {
  open(n)
  park()
  const { completions } = await message('wake')
  deliver(...completions.map((each) => each.n))
  return completions
}
const done = (value = null) => {
  frame('returned', JSON.stringify(value))
  process.exit(0)
}
void [input, attempt, close, say, kept, waitFor]
`

/** A program that says what it likes on the line of the runtime. In its body: `say`, `open`, `close`, `deliver`, `park`, `message`, `kept`, `waitFor`, `done`. */
export function aHandMade(body: string): Promise<Packed> {
  return aBundle(handMadeFiles(body))
}

export function handMadeFiles(body: string): Record<string, string> {
  return { 'main.mjs': STANDS_STILL, 'hand-made.mjs': `${SPEAKS}\n${body}\n` }
}
