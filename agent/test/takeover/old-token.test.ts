// The token in the record of a program is that of its start: after ten minutes it has expired.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { endAgentProcesses } from '../_kit/an-agent.ts'
import { answer, refuse } from '../_kit/http.ts'
import { abandoned } from './abandoned.ts'

const SECRETS = { KEY: 'correct horse battery staple' }
const WAITS = `
  const { existsSync } = process.getBuiltinModule('node:fs')
  console.log(String(process.pid))
  while (!existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 20))
  return 1`

after(endAgentProcesses)

test('a program whose token has expired goes on with another one', async (t) => {
  const { fake, placement, pid, takeOver } = await abandoned(t, WAITS, { secrets: SECRETS })
  fake.secrets = (response) =>
    fake.secretReads.at(-1)?.token === 'renewed'
      ? answer(response, 200, { secrets: SECRETS })
      : refuse(response, 401, 'UNAUTHENTICATED')
  await takeOver()
  writeFileSync(`/proc/${pid}/cwd/go`, '')
  assert.deepEqual((await fake.ending(placement)).how, 'returned')
})
