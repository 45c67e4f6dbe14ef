import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { InputStatus } from '@windlass/shared/model/input.ts'
import { outputOf } from './_kit/durable.ts'
import { fileInstance } from './_kit/file-instance.ts'
import { respond } from './_kit/responder.ts'
import { ended, trigger } from './_kit/runs.ts'
import { until } from './_kit/until.ts'

const { current } = fileInstance({ programs: ['insists', 'sells', 'declines'] })

for (const ends of ['dies', 'throws'] as const) {
  test(`a program that tries again what fails and then ${ends} buys each thing once, with its receipt`, async () => {
    const { client, home } = current()
    const ledger = join(home, `ledger-${ends}`)
    const run = await trigger(client, 'insists', { ledger, ends })
    const asked = async (status: InputStatus) => (await client.inputs.list({ run, status: [status] })).inputs
    // The first is not answered in time. A later one is, however busy this machine is.
    await until('a question that nobody has answered', async () => (await asked('timed_out')).length > 0)
    await until('an answered one', async () => {
      const [input] = await asked('open')
      if (input) await respond(client, input.id, 'home')
      return (await asked('answered')).length > 0
    })
    const end = await ended(client, run)
    assert.deepEqual([end.status, end.attempt], ['completed', 2], end.error?.message)
    const receipts = ['paid A', 'sold parcel', 'home', 'paid B', 'paid C']
    assert.deepEqual(await outputOf(client, run), receipts)
    assert.equal(readFileSync(ledger, 'utf8'), 'A\nparcel\nB\nC\n')
    const children = (await client.runs.children({ run })).runs.map(({ status }) => status)
    assert.deepEqual(children.toSorted(), ['completed', 'failed'])
    assert.equal((await asked('answered')).length, 1)
  })
}

for (const ends of ['dies amid', 'dies behind', 'throws behind'] as const) {
  test(`an order that is declined stays so, though its first attempt ${ends} what follows from that`, async () => {
    const { client, home } = current()
    const ledger = join(home, `declined-${ends}`)
    const run = await trigger(client, 'declines', { ledger, ends })
    const end = await ended(client, run)
    assert.deepEqual([end.status, end.attempt], ['completed', 2], end.error?.message)
    assert.equal(await outputOf(client, run), 'declined')
    const released = ends === 'dies amid' ? 'release\nrelease\n' : 'release\n'
    assert.equal(readFileSync(ledger, 'utf8'), `${released}tell\narchive\n`)
  })
}
