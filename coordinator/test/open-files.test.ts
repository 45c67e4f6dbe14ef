import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { test } from 'node:test'

/** Opens files until so many descriptors are taken; undefined: until there is none. */
async function saidBy(t: { after(end: () => void): void }, most?: number): Promise<Record<string, unknown>> {
  const program = `
    import { openSync } from 'node:fs'
    import { createLog } from ${JSON.stringify(import.meta.resolve('@windlass/shared/log.ts'))}
    import { onMoment } from ${JSON.stringify(import.meta.resolve('@windlass/shared/probe.ts'))}
    import { watchOpenFiles } from ${JSON.stringify(import.meta.resolve('../open-files.ts'))}
    const stop = onMoment(({ name }) => {
      if (name !== 'openFiles.looked') return
      stop()
      console.error('{"name":"opens"}')
      try {
        while (openSync('/dev/null') < ${most ?? Infinity});
      } catch (error) {
        if (error.code !== 'EMFILE') throw error
      }
    })
    void watchOpenFiles(createLog({}), new AbortController().signal)`
  const script = 'ulimit -n 200; exec "$0" "$@"'
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program]
  const child = spawn('/bin/sh', ['-c', script, process.execPath, ...args], { stdio: ['ignore', 'inherit', 'pipe'] })
  t.after(() => child.kill('SIGKILL'))
  const lines = createInterface(child.stderr)[Symbol.asyncIterator]()
  const next = async () => JSON.parse((await lines.next()).value as string) as Record<string, unknown>
  assert.equal((await next())['name'], 'opens', 'nothing is said while there are enough')
  const said = await next()
  child.kill('SIGKILL')
  await once(child, 'exit')
  return said
}

test('a process that has no file descriptor left says so, and does before the last is taken', async (t) => {
  const [none, few] = await Promise.all([saidBy(t), saidBy(t, 185)])
  const factsOf = ({ name, level, open, limit }: Record<string, unknown>) => ({ name, level, open, limit })
  assert.deepEqual(factsOf(none), { name: 'openFiles.few', level: 'warn', open: 200, limit: 200 })
  assert.equal(few['name'], 'openFiles.few')
  assert.ok(Number(few['open']) >= 180 && Number(few['open']) < 200, String(few['open']))
})
