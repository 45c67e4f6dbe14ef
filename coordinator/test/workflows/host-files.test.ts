/** A deploy may hold any text. Nothing of it makes the builder read a file of the coordinator's machine. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import * as esbuild from 'esbuild'
import { bundleWorkflow } from '../../workflows/bundle.ts'
import { DeployError } from '../../workflows/deploy-error.ts'
import { ownMap } from '../../workflows/source-map.ts'
import { filesOf } from '../_kit/workflow-files.ts'

const SECRET = 'top secret of this machine'
let folder: string
let hostMap: string
/** As a program would write the way there, from wherever the bundler works. */
let climb: string

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'windlass-host-'))
  hostMap = join(folder, 'secret.map')
  await writeFile(join(folder, 'secret.key'), SECRET)
  await writeFile(hostMap, JSON.stringify(mapOf(['x'], [SECRET])))
  await writeFile(join(folder, 'admin.json'), JSON.stringify({ password: SECRET }))
  await mkdir(join(folder, 'empty'))
  climb = relative(process.cwd(), folder)
})
after(async () => {
  await esbuild.stop()
  await rm(folder, { recursive: true, force: true })
})

function mapOf(sources: string[], sourcesContent?: string[]) {
  return { version: 3, sources, ...(sourcesContent && { sourcesContent }), names: [], mappings: 'AAAA,CCAA' }
}

/** What esbuild would take for the address of a map: beside, on the disk, in the text itself. */
function addresses(): string[] {
  const stealing = JSON.stringify(mapOf([pathToFileURL(join(folder, 'secret.key')).href, 'file:///proc/self/environ']))
  const file = pathToFileURL(hostMap).href
  return [
    `data:application/json;base64,${Buffer.from(stealing).toString('base64')}`,
    `data:application/json,${encodeURIComponent(stealing)}`,
    `data:application/json;charset=utf-8;base64,${Buffer.from(stealing).toString('base64')}`,
    file,
    file.replace('file:', 'FILE:'),
    file.replace('secret', '%73ecret'),
    hostMap,
    `${climb}/secret.map`,
    'index.ts.map',
  ]
}

const SPELLINGS: [string, (address: string) => string][] = [
  ['//#', (address) => `//# sourceMappingURL=${address}`],
  ['//@', (address) => `//@ sourceMappingURL=${address}`],
  ['/*# */', (address) => `/*# sourceMappingURL=${address} */`],
  ['/*@ */', (address) => `/*@ sourceMappingURL=${address} */`],
  ['/*# */ over lines', (address) => `/*# sourceMappingURL=${address}\n*/`],
  ['//# before a unicode line end', (address) => `//# sourceMappingURL=${address}\u2028`],
  ['//# before CRLF', (address) => `//# sourceMappingURL=${address}\r\n`],
  ['two of them', (address) => `//# sourceMappingURL=${address}\n//@ sourceMappingURL=${address}`],
  ['one behind an empty one', (address) => `//# sourceMappingURL= \n/*# sourceMappingURL=${address} */ // end`],
]

for (const [name, spelled] of SPELLINGS) {
  test(`a source map comment reads nothing, written ${name}`, async () => {
    for (const address of addresses()) {
      const comment = spelled(address)
      const program = 'export const run = (): number => 1'
      const vendored = { 'index.ts': `import one from 'one'; export const run = () => one`, 'vendor/one.mjs': '' }
      const texts: Record<string, string>[] = [
        { 'index.ts': `${program}\n${comment}`, 'index.ts.map': JSON.stringify(mapOf(['file:///etc/passwd'])) },
        { 'index.ts': `${comment}\n${program}` },
        { ...vendored, 'vendor/one.mjs': `export default 1 ${comment}` },
      ]
      for (const contents of texts) {
        const { files } = await bundleWorkflow(filesOf(contents), 'index.ts')
        const map = JSON.parse(files[1]!.content) as { sources: string[]; sourcesContent: string[] }
        assert.doesNotMatch(JSON.stringify(files), /top secret|root:x|PATH=/)
        assert.deepEqual(
          map.sourcesContent,
          map.sources.map((source) => contents[source]),
        )
      }
    }
  })
}

test('a string that holds a source map comment keeps its value', async () => {
  const texts = ['//# sourceMappingURL=a.map', '/*# sourceMappingURL=a.map */', '//@ sourceMappingURL=data:x']
  const code = texts.map((text) => `'${text}', \`${text}\`, String.raw\`${text}\`, /[${text}]/.source`).join(', ')
  const contents = {
    'index.ts': `import { data } from './data.json'; import text from './text.txt'
      export const run = () => [${code}, data, text]`,
    'data.json': JSON.stringify({ data: texts[0] }),
    'text.txt': texts[1]!,
  }
  const { files } = await bundleWorkflow(filesOf(contents), 'index.ts')
  const program = (await import(`data:text/javascript,${encodeURIComponent(files[0]!.content)}`)) as {
    run: () => string[]
  }
  const four = texts.flatMap((text) => [text, text, text, text])
  const escaped = (value: string) => value.replaceAll('\\', '')
  assert.deepEqual(program.run().map(escaped), [
    ...four.map((text, n) => (n % 4 === 3 ? `[${text}]` : text)),
    texts[0],
    texts[1],
  ])
})

/** How the refusal reads; the same for all, or it would tell what the machine has. */
async function refusalOf(call: string, at = 'index.ts'): Promise<Record<string, unknown>> {
  const files = filesOf({ [at]: `export const run = (x: string) => ${call}` })
  const refused: unknown = await bundleWorkflow(files, at).then(
    () => undefined,
    (error: unknown) => error,
  )
  assert.ok(refused instanceof DeployError, `\`${call}\` was taken`)
  assert.doesNotMatch(JSON.stringify([refused.message, refused.detail]), /top secret|secret\.key|admin/)
  const { problems, ...location } = refused.detail
  assert.equal(problems?.length, 1)
  return { message: refused.message.replace(/:\d+: /, ': '), file: location.file, line: location.line }
}

test('a path made at run time reads no folder of this machine, nor tells whether it is there', async () => {
  const patterns = [
    `${climb}/\${x}.json`,
    `${climb}/\${x}`,
    `${climb}/empty/\${x}.json`,
    `${climb}/absent/\${x}.json`,
    `./coordinator/objects/\${x}.ts`,
    `./absent/\${x}.json`,
  ].map((path) => (path.startsWith('.') ? path : `./${path}`))
  for (const at of ['index.ts', 'node_modules/a/index.ts']) {
    const expected = await refusalOf('import(`./absent/${x}.json`)', at)
    assert.match(String(expected['message']), /made at run time cannot be bundled: import each file by its plain path/)
    for (const path of patterns) {
      assert.deepEqual(await refusalOf(`import(\`${path}\`)`, at), expected)
      assert.deepEqual(await refusalOf(`require(\`${path}\`)`, at), expected)
      const inParts = path.split('${x}').map((part) => JSON.stringify(part))
      assert.deepEqual(await refusalOf(`import(${inParts.join(' + x + ')})`, at), expected)
    }
  }
})

/** Each asks esbuild for files that fit `${x}`; `PATH` is where, written with slashes at both ends. */
const ASKED = [
  'import(`PATH${x}.json`)',
  'import(/* c */ `PATH${x}`)',
  'import /* c */ (`PATH${x}`)',
  "import('PATH' + x)",
  "import('PATH' + x + '/' + x)",
  "import(('PATH' + x) as string)",
  "import(x ? './none.ts' : `PATH${x}.json`)",
  "import(`PATH${x}.json`, { with: { type: 'json' } })",
  "import('.' + '.PATH'.slice(0, 0) + x) && require('PATH' + x)",
  'require(`PATH${x}.json`)',
  "requ\\u0069re('PATH' + x)",
  "require(E.Up + x) } enum E { Up = 'PATH' } {",
  "import(`${'PATH'}${x}`)",
  "import(`${''}${`${'PATH'}`}${x}`)",
  "import(('' + 'PATH') + x)",
  "import(x ? y : (0, ('PATH' + x)))",
]

/** With comments of HTML, which only scripts have. */
const IN_SCRIPTS = ["import <!-- c\n('PATH' + x)", "import\n--> c\n('PATH' + x)", "require <!-- c\n('PATH' + x)"]

test('a path made at run time has no folder of this machine looked into', async (t) => {
  const looked = join(folder, 'looked-into')
  await mkdir(looked)
  const long = new Date(0)
  const isRead = async () => (await stat(looked)).atimeMs > 0
  await utimes(looked, long, new Date())
  await readdir(looked)
  if (!(await isRead())) return t.skip('this file system keeps no time of reading')
  const isRefused = async (asked: string, act: (call: string) => Promise<unknown>) => {
    await utimes(looked, long, new Date())
    const call = asked.replaceAll('PATH', `./${climb}/looked-into/`)
    await act(call)
    assert.equal(await isRead(), false, call)
  }
  for (const asked of ASKED) await isRefused(asked, (call) => refusalOf(`{ ${call} }`))
  for (const asked of IN_SCRIPTS) {
    await isRefused(asked, async (call) => {
      const script = `exports.run = (x) => { var y = globalThis.q\n${call} }`
      const files = filesOf({ 'index.ts': `export { run } from './a.js'`, 'a.js': script })
      await assert.rejects(bundleWorkflow(files, 'index.ts'), /a\.js:\d+:\d+: a path that is made at run time/)
    })
  }
})

test('a path made at run time that names a package or no file at all is left to the run', async () => {
  const calls = [
    'import(x)',
    'import(`${x}/index.js`)',
    'import(String(`./${x}`))',
    "load('./' + x)",
    "'import(`./${x}`)'",
    '/import(`.\\/${x}`)/',
    "import('./' + 'one.ts')",
    "x.require('./' + x)",
  ]
  for (const call of calls) {
    const files = filesOf({
      'index.ts': `declare const load: (x: string) => void; export const run = (x: any) => ${call}`,
      'one.ts': 'export const one = 1',
    })
    assert.equal((await bundleWorkflow(files, 'index.ts')).files.length, 2, call)
  }
})

test('a bundle whose map names another file is refused', () => {
  const contents = new Map([['index.ts', 'export const run = 1']])
  assert.deepEqual(JSON.parse(ownMap(JSON.stringify(mapOf(['files:index.ts'])), contents)), {
    ...mapOf(['index.ts'], ['export const run = 1']),
  })
  for (const source of ['../../etc/passwd', 'file:///etc/passwd', 'files:other.ts', 'index.ts', '']) {
    const act = () => ownMap(JSON.stringify(mapOf(['files:index.ts', source])), contents)
    assert.throws(
      act,
      (error) => error instanceof DeployError && /is not among the files: remove the/.test(error.message),
    )
  }
})
