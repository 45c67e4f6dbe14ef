import assert from 'node:assert/strict'
import { mkdir, rename, rm, utimes, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { answerAs, FOREIGN } from '@windlass/shared/test/_kit/foreign.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { startFake } from '../_kit/fake-service.ts'
import type { FakeService } from '../_kit/fake-service.ts'
import { folderOf, goingCli, runCli } from '../_kit/run-cli.ts'
import { aRun, aVersion, aWorkflow, events, sendSseHead, sendStream } from '../_kit/samples.ts'

const DONE = events(['lifecycle', 'run.running'], ['lifecycle', 'run.completed'])

interface Setting extends FakeService {
  folder: string
  /** Writes `index.ts` so that it returns this. */
  save: (returned: string) => Promise<void>
  /** The operations that were asked for, in order, without reads. */
  done: () => string[]
}

function source(returned: string): string {
  return `export const run = () => ${returned}\n`
}

/** A service that takes every deploy and completes every run at once. */
async function setting(t: TestContext, files: Record<string, string> = {}): Promise<Setting> {
  const folder = await folderOf(t, { 'workflow.jsonc': '{ "slug": "hello" }', 'index.ts': source('0'), ...files })
  let version = 1
  const runs = new Map<unknown, Run>()
  const fake = await startFake(t, {
    'workflows.update': () => {
      version++
      return { workflow: aWorkflow({ version }), version: aVersion({ version }) }
    },
    'runs.trigger': () => {
      const run = aRun()
      runs.set(run.id, { ...run, status: 'completed', finishedAt: run.createdAt })
      return { run }
    },
    'runs.get': ({ run }) => ({ run: runs.get(run) }),
    'runs.output': () => ({ output: version }),
    'runs.cancel': ({ run }) => ({ run: { ...runs.get(run), status: 'cancelled' } }),
    'runs.stream': (args, response) => sendStream(response, DONE, args),
  })
  const done = () => fake.asked.map(({ id }) => id).filter((id) => /update|trigger|cancel/.test(id))
  // Whole at once: on a busy machine a file that is written in place is seen empty in between, as a save of its own.
  const save = async (returned: string) => {
    await writeFile(path.join(folder, '.index.ts.new'), source(returned))
    await rename(path.join(folder, '.index.ts.new'), path.join(folder, 'index.ts'))
  }
  return { ...fake, folder, save, done }
}

test('every save is deployed and run; a save that changes nothing is not', async (t) => {
  const { url, folder, save, done, asked } = await setting(t, { 'input.json': '{"n":1}' })
  const dev = goingCli(t, ['dev', folder, '--input', `@${folder}/input.json`], { url })
  await dev.says(/✔ hello, version 2[^]*✔ hello completed/)
  await utimes(path.join(folder, 'index.ts'), new Date(), new Date())
  await writeFile(path.join(folder, '.swap'), 'x')
  await mkdir(path.join(folder, 'node_modules'))
  await writeFile(path.join(folder, 'node_modules/x.js'), 'x')
  await save('1')
  await dev.says(/✔ hello, version 3[^]*✔ hello completed/)
  // It comes behind the words, and Ctrl-C waits for nothing.
  await dev.prints(/^3\n/m)
  const { code } = await dev.interrupt()
  assert.equal(code, 130)
  assert.deepEqual(done(), ['workflows.update', 'runs.trigger', 'workflows.update', 'runs.trigger'])
  const [, first, second] = asked.filter(({ id }) => /update|trigger/.test(id))
  assert.deepEqual([first?.args['input'], first?.args['version']], [{ n: 1 }, 2])
  const { files } = second!.args as { files: { path: string; content: string }[] }
  assert.equal(files.find((file) => file.path === 'index.ts')?.content, source('1'))
  assert.equal(dev.stdout, '2\n3\n')
})

test('a new folder, a file put in the place of another, and one that goes are all seen', async (t) => {
  const { url, folder, asked } = await setting(t)
  const dev = goingCli(t, ['dev'], { url, cwd: folder })
  await dev.says(/version 2/)
  await mkdir(path.join(folder, 'lib'))
  await writeFile(path.join(folder, 'lib/a.ts'), 'export const a = 1\n')
  await dev.says(/version 3/)
  await writeFile(path.join(folder, 'lib/a.ts'), 'export const a = 2\n')
  await dev.says(/version 4/)
  await writeFile(path.join(folder, '.index.ts.new'), source("'new'"))
  await rename(path.join(folder, '.index.ts.new'), path.join(folder, 'index.ts'))
  await dev.says(/version 5/)
  await rm(path.join(folder, 'lib'), { recursive: true })
  await dev.says(/version 6/)
  const { files } = asked.at(-1)!.args as { files: { path: string; content: string }[] }
  assert.deepEqual(
    files.map((file) => [file.path, file.content]),
    [
      ['index.ts', source("'new'")],
      ['workflow.jsonc', '{ "slug": "hello" }'],
    ],
  )
  await dev.interrupt()
})

test('a folder that goes and comes back, as in a checkout, is watched as before, below and as a whole', async (t) => {
  const { url, folder, save } = await setting(t, { 'lib/a.ts': 'export const a = 1\n' })
  const saveBelow = async (n: number) => {
    await writeFile(path.join(folder, '.a.ts.new'), `export const a = ${n}\n`)
    await rename(path.join(folder, '.a.ts.new'), path.join(folder, 'lib/a.ts'))
  }
  const dev = goingCli(t, ['dev', folder], { url })
  await dev.says(/version 2/)
  await rm(path.join(folder, 'lib'), { recursive: true })
  await dev.says(/version 3/)
  await mkdir(path.join(folder, 'lib'))
  await saveBelow(2)
  await dev.says(/version 4/)
  await saveBelow(3)
  await dev.says(/version 5/)
  const other = await folderOf(t, { 'workflow.jsonc': '{ "slug": "hello" }', 'index.ts': source('6') })
  await rm(folder, { recursive: true })
  await dev.says(/does not exist/)
  await rename(other, folder)
  await dev.says(/✔ hello, version/)
  await save('7')
  await dev.says(/✔ hello, version/)
  await dev.interrupt()
})

test('what does not build is told with its line, what is refused with its words; the next save goes on', async (t) => {
  const { url, folder, save, done, answers } = await setting(t)
  const dev = goingCli(t, ['dev', folder, '--run'], { url })
  await dev.says(/version 2[^]*completed/)
  await save('(')
  await dev.says(/✖ index\.ts:\d:\d+: .*\n {2}still watching/)
  await save('0')
  await dev.says(/✔ hello, version 2, as before[^]*completed/)
  const update = answers['workflows.update']!
  answers['workflows.update'] = () => {
    throw new Fault('VALIDATION_FAILED', { path: 'x' }, 'workflow.jsonc:1:2: no')
  }
  await save('1')
  await dev.says(/✖ .*workflow\.jsonc:1:2: no/)
  answers['workflows.update'] = update
  await save('2')
  await dev.says(/version 3[^]*completed/)
  await dev.interrupt()
  assert.equal(done().filter((id) => id === 'workflows.update').length, 3)
})

test('while the service is away it tries again and says when; a newer save replaces the older one', async (t) => {
  const { url, folder, save, answers, asked } = await setting(t)
  const update = answers['workflows.update']!
  const dev = goingCli(t, ['dev', folder], { url })
  await dev.says(/version 2/)
  answers['workflows.update'] = (_args, response) => void response.destroy()
  await save('1')
  await dev.says(/✖ .*its answer was lost.* It may have been done\.\n {2}looking for it in \d/)
  answers['workflows.update'] = update
  await save('2')
  // On a busy machine the older one may still have its next try before the newer one is seen.
  const content = () => (asked.at(-1)!.args as { files?: { content: string }[] }).files?.[0]?.content
  await untilPolled('the newer save to be deployed', () => content() === source('2'))
  await dev.says(/version 3/)
  await dev.interrupt()
  assert.equal(content(), source('2'))
})

test('what a proxy answers in place of the service is waited out, and what is too long for it is not', async (t) => {
  const { url, folder, save, answers } = await setting(t)
  const update = answers['workflows.update']!
  const pages = FOREIGN.filter(({ status }) => status === 404 || status === 401).slice(0, 2)
  answers['workflows.update'] = (args, response, request) => {
    const foreign = pages.shift()
    return foreign ? answerAs(response, foreign) : update(args, response, request)
  }
  const dev = goingCli(t, ['dev', folder], { url })
  await dev.says(/✖ .*answered 404 with something that is not Windlass.*\n {2}trying again in \d/)
  await dev.says(/✖ .*answered 401 with something that is not Windlass.*\n {2}trying again in \d[^]*version 2/)
  pages.push({ status: 413, type: 'text/html', body: '<html>Request Entity Too Large</html>' })
  await save('1')
  await dev.says(/✖ .*answered 413 with something that is not Windlass.*\n {2}still watching/)
  await save('2')
  await dev.says(/version 3/)
  await dev.interrupt()
})

test('a save cancels the run that goes on and starts the next; --no-restart lets it go on', async (t) => {
  for (const [flags, expected] of [
    [[], ['runs.trigger', 'runs.cancel', 'runs.trigger']],
    [['--no-restart'], ['runs.trigger', 'runs.trigger']],
  ] as const) {
    const { url, folder, save, done, answers } = await setting(t)
    answers['runs.stream'] = (_args, response) => sendSseHead(response)
    const dev = goingCli(t, ['dev', folder, '--run', ...flags], { url })
    await dev.says(/── run_/)
    await save('1')
    await dev.says(/version 3[^]*── run_/)
    const { code, stderr } = await dev.interrupt()
    assert.equal(code, 130)
    assert.match(stderr, /run_\w+ goes on\. windlass runs cancel run_\w+ ends it/)
    assert.deepEqual(
      done()
        .filter((id) => id !== 'workflows.update')
        .toSorted(),
      [...expected].toSorted(),
    )
  }
})

test('a start or a cancel without an answer may have been done, and nobody is told to do it again', async (t) => {
  const { url, folder, save, answers } = await setting(t)
  answers['runs.stream'] = (_args, response) => sendSseHead(response)
  const { 'runs.trigger': trigger } = answers
  const away = () => {
    throw new Fault('UNAVAILABLE')
  }
  answers['runs.trigger'] = away
  const dev = goingCli(t, ['dev', folder, '--run'], { url })
  await dev.says(/✖ Whether a run was started is not known: .*\n {2}Next: windlass runs list shows it; the next save/)
  answers['runs.trigger'] = trigger!
  await save('1')
  await dev.says(/── run_/)
  answers['runs.cancel'] = away
  await save('2')
  await dev.says(/✖ Whether (run_\w+) is cancelled is not known: .*\n {2}Next: windlass runs cancel \1\n/)
  answers['runs.trigger'] = () => {
    throw new Fault('SECRETS_UNAVAILABLE')
  }
  await save('3')
  await dev.says(/Next: once the coordinator has its key, save again\n/)
  const { stderr } = await dev.interrupt()
  assert.doesNotMatch(stderr, /try again\.|again: windlass/)
})

test('what is deployed already is not deployed again at the start', async (t) => {
  const { url, folder, answers, done } = await setting(t)
  answers['workflows.get'] = () => ({
    workflow: aWorkflow({ version: 7 }),
    version: aVersion({ version: 7 }),
    files: [
      { path: 'index.ts', content: source('0') },
      { path: 'workflow.jsonc', content: '{ "slug": "hello" }' },
    ],
  })
  const dev = goingCli(t, ['dev', folder, '--run'], { url })
  await dev.says(/hello, version 7, is deployed as it is here; watching[^]*completed/)
  await dev.interrupt()
  assert.deepEqual(done(), ['runs.trigger'])
})

test('a key without the right ends it, as no save would mend that', async (t) => {
  const { url, folder } = await setting(t)
  const { code, stderr } = await runCli(['dev', folder], { url, env: { WINDLASS_API_KEY: 'wl_wrong' } })
  assert.deepEqual([code, /Next: pass a key/.test(stderr)], [4, true])
  const missing = await runCli(['dev', path.join(folder, 'none')], { url })
  assert.deepEqual([missing.code, /does not exist/.test(missing.stderr)], [2, true])
})

test('with --json deploys, events and runs are lines of JSON', async (t) => {
  const { url, folder } = await setting(t)
  const dev = goingCli(t, ['dev', folder, '--run', '--json'], { url })
  await dev.prints(/\{"run":/)
  await dev.interrupt()
  const lines = dev.stdout
    .trimEnd()
    .split('\n')
    .map((line) => Object.keys(JSON.parse(line) as object)[0])
  assert.deepEqual(lines, ['deployed', 'cursor', 'cursor', 'run'])
})
