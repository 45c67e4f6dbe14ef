import assert from 'node:assert/strict'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { createLog } from '@windlass/shared/log.ts'
import { onMoment } from '@windlass/shared/probe.ts'
import { createJudge } from '../../judging/judge.ts'
import { schemaOf } from '../../judging/schema.ts'
import { startConfined } from '../../tools/confined.ts'
import { ownUser } from '../../tools/own-user.ts'
import type { Wish } from './programs/tool.ts'

const tool = new URL('./programs/tool.ts', import.meta.url)
/** Not root, or in a folder of root's alone. */
const own = await ownUser('judging', [tool])
const noUser = 'why' in own && own.why

const uidOf = async (pid: number) => Number(/^Uid:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))![1])

/** What is logged by starting two of them, which end with the test. */
async function startTwo(t: TestContext, entry: URL) {
  const lines: Record<string, unknown>[] = []
  const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>)
  const log = createLog({}, 'info', { write })
  const start = async () => {
    const child = await startConfined<Wish, unknown>({ name: 'judging', entry, log, wallMs: 60_000, heapMb: 64 })
    t.after(() => child.end())
    return child
  }
  // The second one waits for what the first finds out.
  const started = await Promise.all([start(), start()])
  return { lines, uids: await Promise.all(started.map(({ pid }) => uidOf(pid))) }
}

test('children have a user of their own where they come up so', { skip: noUser }, async (t) => {
  const { lines, uids } = await startTwo(t, tool)
  assert.ok(uids[0] !== 0 && uids[0] === uids[1], uids.join())
  assert.deepEqual(
    lines.map(({ name, by, uid }) => [name, by, uid]),
    [['judging.confined', 'user', uids[0]]],
  )
})

test(
  'where that user cannot read all of the program, they come up without, and it is said',
  { skip: noUser },
  async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'windlass-confined-'))
    t.after(() => rm(folder, { recursive: true, force: true }))
    await chmod(folder, 0o755)
    await writeFile(join(folder, 'hidden.mjs'), `import ${JSON.stringify(tool)}`, { mode: 0o600 })
    await writeFile(join(folder, 'program.mjs'), "import './hidden.mjs'", { mode: 0o644 })
    const { lines, uids } = await startTwo(t, pathToFileURL(join(folder, 'program.mjs')))
    assert.deepEqual(uids, [0, 0])
    assert.deepEqual(
      lines.map(({ name, by }) => [name, by]),
      [['judging.confined', 'process']],
    )
    assert.match(String(lines[0]?.why), /program\.mjs did not start/)
  },
)

test('what judges by schemas of programs has a user of its own', { skip: noUser }, async (t) => {
  const judge = createJudge({ log: createLog({}, 'error') })
  t.after(() => judge.close())
  const pids: number[] = []
  t.after(onMoment(({ name, facts }) => void (name === 'tools.started' && pids.push(facts.pid))))
  const written = schemaOf('written', { type: 'string' })
  assert.equal((await judge.judge(written, { text: '"yes"' }, { root: 'answer', org: 'a' })).is, 'fits')
  assert.equal(await uidOf(pids[0]!), own.user?.uid)
})
