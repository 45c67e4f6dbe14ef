import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { aReceiver, anEntry, aSpool, textsOf } from '../_kit/a-spool.ts'
import { aFolder } from '../_kit/an-agent.ts'

test('what stands in other files is told while one cannot be read, and the rest once it can be', async (t) => {
  const { folder, remove } = await aFolder()
  t.after(remove)
  const spool = await aSpool(folder, { awayMs: 1 })
  t.after(() => spool.close())
  const say = (run: string, times: number, text: string) => {
    for (let n = 0; n < times; n++) void spool.append(run, 1, [anEntry(text)])
    spool.flush()
  }
  spool.open([['run_a', 1]])
  say('run_a', 80, 'x'.repeat(60_000))
  spool.open([['run_b', 1]])
  say('run_b', 1, 'b')
  const [first] = readdirSync(path.join(folder, 'spool')).toSorted()
  const file = path.join(folder, 'spool', first!)
  renameSync(file, `${file}.away`)
  mkdirSync(file)
  const receiver = aReceiver(spool)
  const received = (run: string) => textsOf(receiver.got.get(`${run}/1`) ?? [])
  receiver.connect()
  await untilPolled('what stands in the other file', () => received('run_b').length === 1)
  rmSync(file, { recursive: true })
  renameSync(`${file}.away`, file)
  await untilPolled('what stands in this one', () => {
    for (const run of ['run_a', 'run_b']) spool.ack(run, 1, received(run).length)
    receiver.upload.settle()
    return received('run_a').length === 80
  })
})
