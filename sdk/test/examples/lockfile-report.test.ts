import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { countPackages } from '../../examples/lockfile-report/count.ts'
import { findDuplicates } from '../../examples/lockfile-report/duplicates.ts'
import { run } from '../../examples/lockfile-report/index.ts'
import { countLicences } from '../../examples/lockfile-report/licences.ts'
import { measure } from '../../examples/lockfile-report/measure.ts'
import { parseLockfile } from '../../examples/lockfile-report/parse.ts'
import { installSize } from '../../examples/lockfile-report/size.ts'
import { folderOf } from '../_kit/run-cli.ts'

const fetched = { integrity: 'sha512-x' }
const LOCK = {
  name: 'shop',
  lockfileVersion: 3,
  packages: {
    '': { name: 'shop', dependencies: { a: '^1', web: '*' }, devDependencies: { tool: '1' } },
    'apps/web': { name: 'web', dependencies: { b: '^2' } },
    'node_modules/web': { resolved: 'apps/web', link: true },
    'node_modules/a': { version: '1.0.0', license: 'MIT', ...fetched },
    'node_modules/a/node_modules/b': { version: '1.9.0', license: { type: 'ISC' }, ...fetched },
    'node_modules/b': { version: '1.10.0', license: 'MIT', optional: true, ...fetched },
    'apps/web/node_modules/b': { version: '2.0.0', licenses: [], ...fetched },
    'node_modules/tool': {
      version: '1.0.0',
      dev: true,
      hasInstallScript: true,
      license: 'GPL-3.0-only',
      resolved: 'https://example.com/tool.tgz',
    },
    'node_modules/@scope/alias': { name: 'a', version: '1.0.0', license: 'MIT', link: false },
    'node_modules/a/inner/folder': {},
  },
}
const lockfile = parseLockfile(JSON.stringify(LOCK))

test('packages are counted without workspaces, links and folders inside packages', () => {
  const expected = {
    total: 6,
    names: 3,
    direct: 3,
    transitive: 3,
    dev: 1,
    optional: 1,
    withInstallScript: 1,
    tarballs: 5,
    workspaces: 1,
  }
  assert.deepEqual(countPackages(lockfile), expected)
})

test('a duplicate is a name in more than one version, versions in order', () => {
  assert.deepEqual(findDuplicates(lockfile.packages), [
    {
      name: 'b',
      copies: 3,
      versions: [
        { version: '1.9.0', paths: ['node_modules/a/node_modules/b'] },
        { version: '1.10.0', paths: ['node_modules/b'] },
        { version: '2.0.0', paths: ['apps/web/node_modules/b'] },
      ],
    },
  ])
})

test('licences are counted, and packages without one are named', () => {
  assert.deepEqual(countLicences(lockfile.packages), {
    counts: [
      { licence: 'MIT', packages: 3 },
      { licence: 'GPL-3.0-only', packages: 1 },
      { licence: 'ISC', packages: 1 },
    ],
    unknown: ['b@2.0.0'],
  })
})

test('the size is exact where it was measured, and null where nothing was', () => {
  const without = installSize(lockfile.packages)
  assert.deepEqual([without.totalBytes, without.knownFor, without.unknownFor], [null, 0, 6])
  assert.match(without.remark, /measure\.ts/)
  const some = installSize(lockfile.packages, { 'node_modules/a': 10, 'node_modules/b': 30, 'node_modules/gone': 1 })
  assert.deepEqual([some.totalBytes, some.knownFor, some.unknownFor], [40, 2, 4])
  assert.deepEqual(
    some.largest.map((each) => each.bytes),
    [30, 10],
  )
  assert.throws(() => installSize(lockfile.packages, { 'node_modules/a': -1 }), /input\.sizes\["node_modules\/a"\]/)
})

test('a text that is no lockfile is refused with what was expected', () => {
  const cases: [string, RegExp][] = [
    ['', /but it is empty/],
    ['not json', /but it is not JSON/],
    ['# yarn lockfile v1\n', /but it is a yarn\.lock/],
    ['[]', /but it is JSON, but not an object/],
    ['{}', /has no `lockfileVersion`/],
    ['{"lockfileVersion":1,"dependencies":{}}', /npm install --package-lock-only/],
    ['{"lockfileVersion":3}', /has no `packages`/],
  ]
  for (const [text, why] of cases) {
    assert.throws(
      () => parseLockfile(text),
      (error) =>
        error instanceof Error && error.message.startsWith('input.lockfile must be') && why.test(error.message),
    )
  }
})

test('measuring adds up files of a package without those inside it', async (t) => {
  const folder = await folderOf(t, {
    'package-lock.json': JSON.stringify(LOCK),
    'node_modules/a/index.js': '12345',
    'node_modules/a/lib/deep.js': '123',
    'node_modules/a/node_modules/b/index.js': '1',
  })
  assert.deepEqual((await measure(folder)).sizes, { 'node_modules/a': 8, 'node_modules/a/node_modules/b': 1 })
})

test("this project's own lockfile gives a report", async () => {
  const own = await readFile(path.resolve(import.meta.dirname, '../../../package-lock.json'), 'utf8')
  const report = await run({ lockfile: own, name: 'own' })
  assert.equal(report.name, 'own')
  assert.ok(report.packages.total > 100)
  assert.equal(report.packages.direct + report.packages.transitive, report.packages.total)
  assert.equal(report.packages.workspaces, 5)
  assert.ok(report.licences.counts.some(({ licence }) => licence === 'MIT'))
  assert.deepEqual(JSON.parse(JSON.stringify(report)), report)
})
