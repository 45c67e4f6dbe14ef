import assert from 'node:assert/strict'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { Failure } from '../../cli/failure.ts'
import { packFolder } from '../../cli/commands/deploy.ts'
import { packageFiles, vendored } from '../_kit/packages.ts'
import { startFake } from '../_kit/fake-service.ts'
import { folderOf, runCli } from '../_kit/run-cli.ts'

const ESM = { type: 'module', main: 'index.js' }
const USES_EVIL = "import { x } from 'evil'\nexport const run = () => String(x)\n"

/** A project beside a home and a linked package, whose `evil` is given. */
async function aProject(t: TestContext, evil: Record<string, string>, manifest: Record<string, unknown> = ESM) {
  const inProject = {
    'workflow.jsonc': '{"slug":"a"}',
    'index.ts': USES_EVIL,
    '.env': 'KEY=hunter2',
    '.own.json': '{}',
  }
  const files = { ...inProject, ...packageFiles('evil', evil, manifest) }
  const top = await folderOf(t, {
    'home/.env': 'KEY=hunter2',
    'home/config.json': '{"key":"hunter2"}',
    'home/package.json': '{"name":"home"}',
    'linked/package.json': '{"name":"linked","type":"module","main":"main.js"}',
    'linked/main.js': 'export const linked = 1\n',
    'linked/.env': 'KEY=hunter2',
    'linked/secrets.json': '{"key":"hunter2"}',
    ...Object.fromEntries(Object.entries(files).map(([file, content]) => [`proj/${file}`, content])),
  })
  await symlink('../../linked', path.join(top, 'proj/node_modules/linked'))
  return { top, folder: path.join(top, 'proj') }
}

async function refusalOf(folder: string): Promise<string> {
  const failure = await packFolder(folder).then(
    ({ files }) => assert.fail(`was packed: ${files.map((file) => `${file.path}\n${file.content}`).join('\n')}`),
    (error: unknown) => error,
  )
  assert.ok(failure instanceof Failure, String(failure))
  return failure.message
}

const HOME = '../../../home'
const TEXT = "with { type: 'text' }"

// What `evil` is made of, and what is to be named.
const OUTSIDE: [string, Record<string, string>, string | RegExp, Record<string, unknown>?][] = [
  ['a path past its folder', { 'index.js': `import x from '${HOME}/config.json'\nexport { x }` }, 'home/config.json'],
  ['a text past its folder', { 'index.js': `import x from '${HOME}/.env' ${TEXT}\nexport { x }` }, 'home/.env'],
  ['bytes', { 'index.js': `import x from '${HOME}/.env' with { type: 'bytes' }\nexport { x }` }, 'home/.env'],
  ["the workflow's own .env", { 'index.js': `import x from '../../.env' ${TEXT}\nexport { x }` }, 'proj/.env'],
  ['require', { 'index.cjs': `exports.x = require('${HOME}/config.json')` }, 'home/config.json', { main: 'index.cjs' }],
  ['a dynamic import', { 'index.js': `export const x = import('${HOME}/config.json')` }, 'home/config.json'],
  ['a pattern', { 'index.js': `export const x = (u) => import(\`${HOME}/con\${u}.json\`)` }, 'home/config.json'],
  ['a pattern of require', { 'index.js': `export const x = (u) => require(\`${HOME}/con\${u}.json\`)` }, 'config.json'],
  [
    'a pattern into a linked package that is used',
    { 'index.js': `import 'linked'\nexport const x = (u) => import(\`../../../linked/sec\${u}.json\`)` },
    'linked/secrets.json',
  ],
  ['`main`', { 'a.js': '' }, 'home/config.json', { main: `${HOME}/config.json` }],
  ["`main` that is the workflow's", { 'a.js': '' }, 'proj/.own.json', { main: '../../.own.json' }],
  [
    'a name with a path in it',
    { 'index.js': `import x from 'evil/../../../home/config.json'\nexport { x }` },
    /evil\/|config\.json/,
  ],
  [
    'a scope with a path in it',
    {
      'index.js': `import x from '@a/../.cache/a.json'\nexport { x }`,
      '../@a/b/index.js': '',
      '../.cache/a.json': '{}',
    },
    '.cache/a.json',
  ],
  [
    'what lies in .cache',
    { 'index.js': `import x from '.cache/a.json'\nexport { x }`, '../.cache/a.json': '{}' },
    '.cache',
  ],
  ['a text of a linked package', { 'index.js': `import x from 'linked/.env' ${TEXT}\nexport { x }` }, 'linked/.env'],
  ['a path into a linked package', { 'index.js': `import x from 'linked/secrets.json'\nexport { x }` }, 'secrets.json'],
  [
    'a map of names',
    { 'index.js': "import x from '#x'\nexport { x }" },
    /home\/config\.json|Could not resolve "#x"/,
    { ...ESM, imports: { '#x': `./${HOME}/config.json` } },
  ],
  [
    '`paths` of a tsconfig.json',
    {
      'index.js': "import x from 'zz'\nexport { x }",
      'tsconfig.json': `{"extends":"./base.json"}`,
      'base.json': `{"compilerOptions":{"paths":{"zz":["${HOME}/config.json"]}}}`,
    },
    'zz',
  ],
  ['a style', { 'index.js': `import './a.css'\nexport const x = 1`, 'a.css': `@import '${HOME}/a.css';` }, /a\.css/],
]

for (const [what, evil, named, manifest] of OUTSIDE) {
  test(`a package that is bundled gets nothing outside of its folder: ${what}`, async (t) => {
    const { folder } = await aProject(t, evil, manifest)
    const message = await refusalOf(folder)
    assert.doesNotMatch(message, /hunter2/)
    assert.match(message, typeof named === 'string' ? new RegExp(named.replaceAll('.', '\\.')) : named)
    assert.match(message, /evil/)
  })
}

test('a package does not get the environment of who deploys it', { skip: process.platform !== 'linux' }, async (t) => {
  const evil = { 'index.js': `import x from '/proc/self/environ' ${TEXT}\nexport { x }` }
  const { folder } = await aProject(t, evil)
  const { code, stderr } = await runCli(['deploy', folder], { url: (await startFake(t)).url })
  assert.equal(code, 2)
  assert.match(stderr, /The package `evil` imports \/proc\/\d+\/environ \(in node_modules\/evil\/index\.js\)/)
})

test('a link in a package leads nowhere', async (t) => {
  const evil = { 'index.js': `import x from './link.json'\nexport { x }` }
  const { top, folder } = await aProject(t, evil)
  await symlink(path.join(top, 'home/config.json'), path.join(folder, 'node_modules/evil/link.json'))
  assert.match(await refusalOf(folder), /`evil` imports .*home\/config\.json/)
})

test('a link in a package is no way for its patterns', async (t) => {
  const evil = { 'index.js': `import 'linked'\nexport const x = (u) => import(\`./in/\${u}.json\`)`, 'in/a.json': '{}' }
  const { top, folder } = await aProject(t, evil)
  await symlink(path.join(top, 'linked'), path.join(folder, 'node_modules/evil/in/linked'))
  await symlink(path.join(top, 'linked/secrets.json'), path.join(folder, 'node_modules/evil/in/b.json'))
  const packed = await packFolder(folder).catch((error: unknown) => String(error))
  assert.doesNotMatch(JSON.stringify(packed), /hunter2/)
})

test('a package cannot bring a link along that makes a package of a folder', async (t) => {
  const evil = { 'index.js': `import x from 'any/config.json'\nexport { x }` }
  const { top, folder } = await aProject(t, evil)
  await mkdir(path.join(folder, 'node_modules/evil/node_modules'))
  await symlink(path.join(top, 'home'), path.join(folder, 'node_modules/evil/node_modules/any'))
  assert.match(await refusalOf(folder), /`evil` imports .*home\/config\.json/)
})

test('a package that the program imports by its path gets nothing outside either', async (t) => {
  const { folder } = await aProject(t, { 'index.js': `import x from '../../.env' ${TEXT}\nexport { x }` })
  const index = USES_EVIL.replace("'evil'", "'./node_modules/evil/index.js'")
  await writeFile(path.join(folder, 'index.ts'), index)
  assert.match(await refusalOf(folder), /`evil` imports .*proj\/\.env/)
})

test('a map of source positions is not read', async (t) => {
  const evil = { 'index.js': `export const x = 1\n//# sourceMappingURL=${HOME}/config.json\n` }
  const { folder } = await aProject(t, evil)
  assert.doesNotMatch(
    JSON.stringify((await packFolder(folder)).files.filter((file) => file.path !== '.env')),
    /hunter2/,
  )
})

test('a package has its own files by every kind of name', async (t) => {
  const { load } = await vendored(t, {
    'index.ts': "import { all, say } from '@acme/pkg'\nexport const run = () => [all, say]\n",
    ...packageFiles(
      '@acme/pkg',
      {
        'dist/index.js':
          "import a from '../data/a.json'\nimport b from '#b'\nimport c from '@acme/pkg/self'\nimport d from '#dep'\n" +
          "import e from './node_modules/inner/index.js'\nimport f from '.prisma/client/f'\n" +
          `import g from './g.txt' ${TEXT}\n` +
          'export const all = [a, b, c, d, e, f, g]\n' +
          'export const say = async (l) => (await import(`./lang/${l}.js`)).default\n',
        'data/package.json': '{"type":"module"}',
        'dist/lang/en.js': 'import shared from "../../data/a.json"\nexport default "hello " + shared\n',
        'dist/g.txt': '7',
        'dist/node_modules/inner/index.js': 'import five from "../../five.js"\nexport default five\n',
        'dist/five.js': 'export default 5\n',
        'data/a.json': '1',
        'b.js': 'export default 2\n',
        'self.js': 'export default 3\n',
      },
      {
        type: 'module',
        exports: { '.': './dist/index.js', './self': './self.js' },
        imports: { '#b': './b.js', '#dep': { node: 'dep', default: './b.js' } },
      },
    ),
    ...packageFiles('dep', { 'index.js': 'export default 4\n' }, ESM),
    ...packageFiles('.prisma/client', { 'f.js': 'export default 6\n' }, { type: 'module' }),
  })
  const { all, say } = (await load('@acme/pkg')) as { all: unknown; say: (language: string) => Promise<string> }
  assert.deepEqual(all, [1, 2, 3, 4, 5, 6, '7'])
  assert.equal(await say('en'), 'hello 1')
})

test('packages are found by the links of pnpm, of workspaces and of npm link', async (t) => {
  const store = 'proj/node_modules/.pnpm'
  const top = await folderOf(t, {
    'proj/workflow.jsonc': '{"slug":"a"}',
    'proj/index.ts': "import { a } from '@acme/a'\nimport { lang } from 'ours'\nexport const run = () => [a, lang]\n",
    [`${store}/@acme+a@1/node_modules/@acme/a/package.json`]: '{"name":"@acme/a","type":"module"}',
    [`${store}/@acme+a@1/node_modules/@acme/a/index.js`]:
      "import { b } from 'b'\nimport { lang } from 'ours'\nimport { deep } from 'ours/deep'\n" +
      'export const a = [b, deep]\n',
    [`${store}/b@1/node_modules/b/package.json`]: '{"name":"b","type":"module"}',
    [`${store}/b@1/node_modules/b/index.js`]: 'export const b = 1\n',
    'ours/package.json':
      '{"name":"ours","type":"module","imports":{"#lang/*":"./lang/*.js"},' +
      '"exports":{".":"./src/index.js","./deep":"./src/deep.js"}}',
    'ours/src/index.js': "import { b } from 'b'\nimport en from '#lang/en'\nexport const lang = [en, b]\n",
    'ours/src/deep.js': 'export const deep = 2\n',
    'ours/lang/en.js': "export default 'en'\n",
  })
  const links = {
    'proj/node_modules/@acme/a': `${store}/@acme+a@1/node_modules/@acme/a`,
    [`${store}/@acme+a@1/node_modules/b`]: `${store}/b@1/node_modules/b`,
    [`${store}/@acme+a@1/node_modules/ours`]: 'ours',
    'ours/node_modules/b': `${store}/b@1/node_modules/b`,
    'proj/node_modules/ours': 'ours',
  }
  for (const [link, target] of Object.entries(links)) {
    await mkdir(path.dirname(path.join(top, link)), { recursive: true })
    await symlink(path.join(top, target), path.join(top, link))
  }
  const { files } = await packFolder(path.join(top, 'proj'))
  const names = files.map((file) => file.path).filter((file) => !file.startsWith('vendor/_shared/'))
  assert.deepEqual(names.sort(), ['index.ts', 'vendor/@acme/a.mjs', 'vendor/ours.mjs', 'workflow.jsonc'])
})

test("a package in a linked one gets nothing of that one's folder", async (t) => {
  const { top, folder } = await aProject(t, { 'index.js': "export { x } from 'inner'" })
  const inner = path.join(top, 'linked/node_modules/inner')
  await mkdir(inner, { recursive: true })
  await writeFile(path.join(inner, 'index.js'), `import x from '../../.env' ${TEXT}\nexport { x }\n`)
  await writeFile(path.join(top, 'linked/main.js'), "export { x } from 'inner'\n")
  await writeFile(path.join(folder, 'index.ts'), USES_EVIL.replace('evil', 'linked'))
  assert.match(await refusalOf(folder), /`inner` imports .*linked\/\.env/)
  await writeFile(path.join(top, 'linked/main.js'), "export { x } from './node_modules/inner/index.js'\n")
  assert.match(await refusalOf(folder), /`inner` imports .*linked\/\.env/)
})

test('the program may name its own package', async (t) => {
  const { load } = await vendored(t, {
    'package.json': '{"name":"me","type":"module","exports":{"./a":"./lib/a.js"}}',
    'index.ts': "import { a } from 'me/a'\nexport const run = () => a\n",
    'lib/a.js': 'export const a = 1\n',
  })
  assert.equal((await load('me/a'))['a'], 1)
})
