// The runtime cuts what is long. What a secret begins with is not shown before such a cut.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aProgram } from '../_kit/bundle.ts'
import { aRedactor } from '../_kit/a-redactor.ts'
import { withAgent } from '../_kit/with-agent.ts'

const KEY = 'sk_live_ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789_end'
const WIDE = 'prefix-of-the-secret-\u{1F511}-rest'

withAgent(
  'what a secret begins with is hidden where the stack of an error or its message was cut',
  async ({ fake }) => {
    fake.secrets = { KEY, WIDE }
    const program = await aProgram(`
    const { log, phase } = await import('windlass')
    const error = new Error('x'.repeat(8000 - 'Error: '.length - 45) + process.env.KEY)
    log('failed', { error })
    phase('failing', { error })
    throw new Error('x'.repeat(10_000 - 22) + process.env.WIDE + 'more')`)
    const placement = fake.offer(program, { secrets: true })
    await fake.ending(placement)
    const shown = JSON.stringify(placement)
    assert.equal(shown.split('x***…').length - 1, 3, shown.replace(/x{20,}/g, 'xxx'))
    assert.ok(!shown.includes('sk_live_') && !shown.includes('prefix-of'))
  },
)

test('a cut in the midst of a character hides what a secret begins with, as any other', () => {
  const redactor = aRedactor({ WIDE })
  const half = WIDE.slice(0, 22)
  assert.equal(redactor.text(`failed: ${half}…`), 'failed: ***\ufffd…')
  assert.equal(redactor.text(`failed: ${half}`, true), 'failed: ***\ufffd')
  assert.equal(redactor.json(JSON.stringify({ message: `failed: ${half}…` })), '{"message":"failed: ***\ufffd…"}')
})
