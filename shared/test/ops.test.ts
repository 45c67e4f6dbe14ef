import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { FAULTS } from '../errors.ts'
import { allOps, ops } from '../ops/index.ts'
import { type AnyOp, isForCallers } from '../ops/op.ts'
import { pathNames } from '../ops/fill-route.ts'

// The golden list makes every change of the contract visible in review. To accept one:
// npx node shared/test/ops.test.ts --update
const GOLDEN = join(import.meta.dirname, '../ops.golden.txt')

function goldenLine(row: AnyOp): string {
  const scope = row.scope.length > 0 ? row.scope.join('|') : '-'
  return [
    row.method,
    row.path,
    row.id,
    row.credentials.join('|') || '-',
    scope,
    row.role ?? '-',
    row.mcp?.tool ?? '-',
  ].join(' ')
}

function goldenText(): string {
  const lines = allOps.map(goldenLine).sort()
  return `# method path id credentials scope role tool\n${lines.join('\n')}\n`
}

if (process.argv.includes('--update')) writeFileSync(GOLDEN, goldenText())

test('the table is the golden list; after a wanted change run `npx node shared/test/ops.test.ts --update`', () => {
  assert.equal(goldenText(), readFileSync(GOLDEN, 'utf8'))
})

test('ids are unique, and name the group and the key under which the row is found', () => {
  assert.equal(new Set(allOps.map((row) => row.id)).size, allOps.length)
  for (const [group, rows] of Object.entries(ops)) {
    for (const [name, row] of Object.entries(rows)) assert.equal((row as unknown as AnyOp).id, `${group}.${name}`)
  }
})

test('each group has a folder of its name, and every folder is of a group', () => {
  const folder = join(import.meta.dirname, '../ops')
  const folders = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const kebab = (name: string) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  assert.deepEqual(folders.map(({ name }) => name).sort(), Object.keys(ops).map(kebab).sort())
  for (const { name } of folders) assert.ok(existsSync(join(folder, name, 'ops.ts')), name)
})

test('no two rows share method and path, nor paths that differ in the names of their parameters only', () => {
  const addresses = allOps.flatMap((row) => [row.path, ...(row.aliases ?? [])].map((path) => `${row.method} ${path}`))
  assert.equal(new Set(addresses).size, addresses.length)
  const shapes = new Map(allOps.map((row) => [row.path.replace(/\{\w+\}/g, '{}'), row.path]))
  assert.equal(shapes.size, new Set(allOps.map((row) => row.path)).size)
})

test('MCP tools have unique names in snake case, and are for callers', () => {
  const tools = allOps.flatMap((row) => (row.mcp ? [row.mcp.tool] : []))
  assert.equal(new Set(tools).size, tools.length)
  for (const row of allOps.filter((one) => one.mcp)) {
    assert.match(row.mcp!.tool, /^[a-z]+(_[a-z]+)*$/)
    assert.ok(isForCallers(row), row.id)
    assert.equal(row.wire, undefined, row.id)
  }
})

test('every declared fault is one of FAULTS, and every name in a path is a field of the input', () => {
  for (const row of allOps) {
    for (const code of row.faults) assert.ok(Object.hasOwn(FAULTS, code), `${row.id}: ${code}`)
    for (const name of pathNames(row.path)) assert.ok(Object.hasOwn(row.input.shape, name), `${row.id}: {${name}}`)
  }
})

test('every row for callers names a role, and no other does', () => {
  for (const row of allOps) assert.equal(row.role !== null, isForCallers(row), row.id)
})

test('inputs are strict and outputs are objects that may grow', () => {
  for (const row of allOps) {
    assert.equal(row.input.safeParse({ 'no such field': 1 }).success, false, row.id)
    const kind = row.output.def.type
    assert.ok(row.wire ? kind === 'string' : kind === 'object' || kind === 'record', `${row.id} answers ${kind}`)
  }
})

test('paths lie under /v1, those of agents and programs under /runner/v1', () => {
  for (const row of allOps) {
    if (isForCallers(row)) assert.match(row.path, /^\/v1\//, row.id)
    if (row.credentials.includes('runner') || row.credentials.includes('run'))
      assert.match(row.path, /^\/runner\/v1\//, row.id)
  }
})

test('slashes are taken by the last field of a path, alike by all rows of that path', () => {
  for (const row of allOps.filter((one) => one.slashes)) assert.match(row.path, /\/\{\w+\}$/, row.id)
  const differing = allOps.filter((row) => allOps.some((one) => one.path === row.path && one.slashes !== row.slashes))
  assert.deepEqual(differing, [])
})

test('parts are asked of bytes alone, and one that is not there has its fault', () => {
  for (const row of allOps.filter((one) => one.ranges)) {
    assert.equal(row.wire, 'bytes', row.id)
    assert.ok(row.faults.includes('RANGE_NOT_SATISFIABLE'), row.id)
  }
})

test('an alias names what its path names, and takes no slashes', () => {
  for (const row of allOps)
    for (const alias of row.aliases ?? []) {
      assert.deepEqual(pathNames(alias).toSorted(), pathNames(row.path).toSorted(), row.id)
      assert.equal(row.slashes, undefined, row.id)
    }
})
