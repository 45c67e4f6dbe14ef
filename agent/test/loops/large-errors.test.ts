import assert from 'node:assert/strict'
import { aProgram } from '../_kit/bundle.ts'
import { withAgent } from '../_kit/with-agent.ts'

/** Speaks to the agent in the place of the runtime, with an error of 12 MiB that JSON doubles. */
const LOUD = `
  const { writeSync } = await import('node:fs')
  const text = Buffer.from(JSON.stringify({ name: 'Error', message: '"'.repeat(6 * 1024 * 1024), detail: { a: 1 } }))
  const head = Buffer.alloc(13)
  head.writeUInt8('T'.charCodeAt(0), 0)
  head.writeUInt32LE(text.length, 1)
  head.writeDoubleLE(Date.now(), 5)
  for (const bytes of [head, text]) for (let at = 0; at < bytes.length; ) at += writeSync(3, bytes, at)
  return 1`

withAgent('an error that is larger than a frame is clipped, and the runs behind it go on', async ({ fake }) => {
  const ending = await fake.ending(fake.offer(await aProgram(LOUD)))
  assert.equal(ending.how, 'threw')
  assert.ok(JSON.stringify(ending).length < 1024 * 1024)
  assert.deepEqual(await fake.ending(fake.offer(await aProgram('return 2'))), { how: 'returned', outputText: '2' })
})
