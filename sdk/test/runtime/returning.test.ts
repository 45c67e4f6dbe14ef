import assert from 'node:assert/strict'
import test from 'node:test'
import { aHost } from './host-process.ts'

const warned = (text: string) => JSON.parse(text) as { text: string; level: string }

for (const [returned, where] of [
  [`new Map([['a', 1]])`, ' a value of the class Map,'],
  [`{ of: [1, new Set([2])] }`, ', at `of[1]`, a value of the class Set,'],
  [`[new Error('lost')]`, ', at `[0]`, a value of the class Error,'],
  [`{ late: Promise.resolve(1) }`, ', at `late`, a value of the class Promise,'],
  [`(function* () { yield 1 })()`, ' an iterator,'],
] as const)
  test(`what JSON keeps nothing of is named in the log: ${returned}`, async (t) => {
    const host = await aHost(t, `return ${returned}`)
    host.start()
    const { text, level } = warned(await host.next('log'))
    assert.equal(level, 'warn')
    assert.ok(text.startsWith(`run() returned${where}`), text)
    await host.next('returned')
  })

test('nothing is said of what JSON keeps, or what holds nothing', async (t) => {
  const sized = `new (class { get size() { throw new Error() } })()`
  const plain = `{}, Object.create(null), new Map(), [], new Date(0), { toJSON: () => ({}) }, { '{}': '{}' }`
  const host = await aHost(t, `return [${plain}, ${sized}]`)
  host.start()
  await host.next('returned')
  assert.equal(
    host.seen.some(({ name }) => name === 'log'),
    false,
  )
})
