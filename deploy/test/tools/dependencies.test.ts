import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { brokenDependencies } from '../../tools/dependencies.ts'

const ROOMS = ['shared', 'coordinator', 'agent', 'sdk', 'deploy']

function write(root: string, files: Record<string, unknown>): void {
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true })
    writeFileSync(path.join(root, file), typeof content === 'string' ? content : JSON.stringify(content))
  }
}

test('a declared package that lacks its own dependency is named, with its room', async (t) => {
  const root = mkdtempSync(path.join(tmpdir(), 'dependencies-'))
  t.after(() => rmSync(root, { recursive: true }))
  write(root, { 'package.json': { name: 'root', devDependencies: { 'a-tool': '1' } } })
  for (const room of ROOMS) write(root, { [`${room}/package.json`]: { name: room } })
  const dependencies = { whole: '1', hollow: '1', absent: '1', agent: '1' }
  const optionalDependencies = { '@binaries/plan9-vax': '1' }
  write(root, {
    'sdk/package.json': { name: 'sdk', dependencies, optionalDependencies, devDependencies: { '@types/absent': '1' } },
    'node_modules/whole/package.json': { name: 'whole', type: 'module', exports: './index.js' },
    'node_modules/whole/index.js': 'export {}',
    'node_modules/hollow/package.json': { name: 'hollow', type: 'module', exports: './index.js' },
    'node_modules/hollow/index.js': "import 'left-out-of-the-lockfile'",
  })

  const broken = await brokenDependencies(root)
  assert.deepEqual(
    broken.map(({ room, name }) => `${room}: ${name}`),
    ['sdk: hollow', 'sdk: absent'],
  )
  assert.match(broken[0]?.reason ?? '', /left-out-of-the-lockfile/)
})

test('a package that exports parts only is loaded by one of them, and a command has to have its file', async (t) => {
  const root = mkdtempSync(path.join(tmpdir(), 'dependencies-'))
  t.after(() => rmSync(root, { recursive: true }))
  write(root, { 'package.json': { name: 'root' } })
  for (const room of ROOMS) write(root, { [`${room}/package.json`]: { name: room } })
  const parts = { './*': './*.js', './one': './one.js' }
  write(root, {
    'deploy/package.json': {
      name: 'deploy',
      devDependencies: { parted: '1', headless: '1', broken: '1', command: '1', gone: '1' },
    },
    'node_modules/parted/package.json': { name: 'parted', type: 'module', exports: parts },
    'node_modules/parted/one.js': 'export {}',
    'node_modules/headless/package.json': { name: 'headless', type: 'module', exports: { '.': './main.js', ...parts } },
    'node_modules/headless/one.js': 'export {}',
    'node_modules/broken/package.json': { name: 'broken', type: 'module', exports: parts },
    'node_modules/broken/one.js': "import 'left-out-of-the-lockfile'",
    'node_modules/command/package.json': { name: 'command', bin: { command: 'run.js' } },
    'node_modules/command/run.js': 'process.exit(1)',
    'node_modules/gone/package.json': { name: 'gone', bin: 'run.js' },
  })

  const broken = await brokenDependencies(root)
  assert.deepEqual(
    broken.map(({ name }) => name),
    ['broken', 'gone'],
  )
})
