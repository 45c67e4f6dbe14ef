import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createLog } from '@windlass/shared/log.ts'
import { strangerReads } from '../../limits/stranger-reads.ts'
import { refusal } from '../_kit/coordinator.ts'

type Asked = ReturnType<typeof asked>[number]
const log = createLog({}, 'error')
const asked = (count: number) => Array.from({ length: count }, (_, n) => ({ network: `${n}`, n }))

test('each takes two milliseconds, twenty of one statement together', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  t.mock.method(performance, 'now', () => 0)
  const reads = strangerReads({
    name: 'test',
    log,
    read: async (all: readonly Asked[]) => [...all],
  })
  assert.equal((await alone(reads.add({ network: 'a', n: 7 }), t)).n, 7)
  let answered = 0
  for (const one of asked(30)) void reads.add(one).then(() => answered++)
  await turns()
  assert.equal(answered, 0)
  t.mock.timers.tick(39)
  await turns()
  assert.equal(answered, 0)
  t.mock.timers.tick(1)
  await turns()
  assert.equal(answered, 20)
  t.mock.timers.tick(20)
  await turns()
  assert.equal(answered, 30)
})

test('who waits for longer than ten seconds is told to come again', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const never = new Promise<number[]>(() => {})
  const reads = strangerReads<{ network: string }, number>({ name: 'test', log, read: () => never })
  const late = assert.rejects(reads.add({ network: 'a' }), refusal('UNAVAILABLE'))
  await turns()
  t.mock.timers.tick(10_000)
  await late
})

test('who has waited for too long is not looked up any more', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { add, read, letGo } = heldUp()
  const first = assert.rejects(add('a'), refusal('UNAVAILABLE'))
  await turns()
  const second = assert.rejects(add('b'), refusal('UNAVAILABLE'))
  t.mock.timers.tick(10_000)
  await Promise.all([first, second])
  void add('c')
  letGo()
  await turns()
  t.mock.timers.tick(2)
  await turns()
  assert.deepEqual(read, [['a'], ['c']])
})

test('who hangs up is not looked up, and waits no more at once', async () => {
  const { add, read, letGo } = heldUp()
  const first = add('a')
  await turns()
  const gone = new AbortController()
  const others = [assert.rejects(add('b', gone.signal), refusal('UNAVAILABLE')), add('c', new AbortController().signal)]
  gone.abort()
  await others[0]
  letGo()
  await Promise.all([first, ...others])
  assert.deepEqual(read, [['a'], ['c']])
})

test('all that asks from one /48 has one turn beside the others', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { add, read, letGo } = heldUp()
  void add('198.51.100.1')
  await turns()
  for (let n = 0; n < 1000; n++) void add(`2001:db8:1:${n.toString(16)}::/64`)
  const others = ['2001:db8:2:0::/64', '192.0.2.1']
  for (const network of others) void add(network)
  letGo()
  await turns()
  t.mock.timers.tick(2)
  await turns()
  assert.deepEqual(
    others.filter((network) => read[1]?.includes(network)),
    others,
  )
})

test('where 5,000 wait, one of the network with most makes room for one that has fewer', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { add } = heldUp()
  void add('198.51.100.1')
  await turns()
  const refused: string[] = []
  const ask = (network: string) => void add(network).catch(() => refused.push(network))
  for (let n = 0; n < 5000; n++) ask(`2001:db8:1:${n.toString(16)}::/64`)
  ask('2001:db8:1:ffff::/64')
  await turns()
  assert.deepEqual(refused, ['2001:db8:1:ffff::/64'])
  ask('192.0.2.1')
  await turns()
  assert.equal(refused.length, 2)
  assert.match(refused[1]!, /^2001:db8:1:/)
})

/** Look-ups of which the first one takes until it is let go; `read` has the networks of each. */
function heldUp() {
  const held = Promise.withResolvers<void>()
  const read: string[][] = []
  const reads = strangerReads<{ network: string }, string>({
    name: 'test',
    log,
    async read(all) {
      const networks = all.map(({ network }) => network)
      read.push(networks)
      await held.promise
      return networks
    },
  })
  return { add: (network: string, gone?: AbortSignal) => reads.add({ network }, gone), read, letGo: held.resolve }
}

async function turns(): Promise<void> {
  for (let n = 0; n < 5; n++) await turn()
}

/** Two milliseconds, by the clock of the test. */
async function alone<T>(answer: Promise<T>, t: { mock: { timers: { tick(ms: number): void } } }): Promise<T> {
  await turns()
  t.mock.timers.tick(2)
  return answer
}
