import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Cli } from '../ops/cli.ts'
import { allOps } from '../ops/index.ts'
import type { AnyOp } from '../ops/op.ts'

/** The part of a zod schema that is read here. */
interface Schema {
  readonly shape?: Readonly<Record<string, Schema>>
  readonly def: {
    readonly type: string
    readonly innerType?: Schema
    readonly element?: Schema
    readonly valueType?: Schema
    readonly options?: readonly Schema[]
  }
}

const rows = allOps.filter((row): row is AnyOp & { cli: Cli } => row.cli !== undefined)

test('every field that the command line shows is one of the answer, or of what was typed', () => {
  for (const row of rows) {
    const { table, fields, json, print = [], note = [] } = row.cli
    const shown = [...Object.values(fields ?? {}), ...(json === undefined ? [] : [json]), ...print, ...note]
    for (const path of shown.flatMap(pathsOf))
      assert.ok(leads(row.output, path) || leads(row.input, path), `${row.id}: ${path}`)
    for (const path of Object.values(table?.columns ?? {}).flatMap(pathsOf))
      assert.ok(leads(itemOf(row), path), `${row.id}: ${path}`)
  }
  assert.ok(rows.length > 40)
})

test('an argument that a row names is a field of its body', () => {
  const named = rows.flatMap((row) => Object.keys(row.cli.args ?? {}).map((name) => [row, name] as const))
  for (const [{ id, input, path }, name] of named)
    assert.ok(name in input.shape && !path.includes(`{${name}}`), `${id}: ${name}`)
  assert.ok(named.length > 0)
})

test('a row shows one thing: a list, the fields of one thing, lines, or a JSON value', () => {
  for (const { id, cli } of rows) {
    const { table, fields, print, json } = cli
    assert.ok([table, fields, print, json].filter((part) => part !== undefined).length <= 1, id)
  }
})

/** `pool.name` of itself, or of each place in braces: `{status} since {at:time}`. */
function pathsOf(text: string): string[] {
  const braced = [...text.matchAll(/\{([\w.]+)(?::\w+)?(?:\|[^}]*)?\}/g)].map(([, path = '']) => path)
  const isSentence = / /.test(text) || text.includes('{')
  return isSentence ? braced : [text.replace(/(\.\*)?(:\w+)?$/, '')]
}

function itemOf({ id, output }: AnyOp): Schema {
  const lists = Object.values((output as unknown as Schema).shape ?? {}).filter(({ def }) => def.type === 'array')
  assert.ok(lists[0]?.def.element, `${id} answers no list`)
  return lists[0].def.element
}

function leads(from: unknown, path: string): boolean {
  const last = path.split('.').reduce<Schema | undefined>((at, name) => at && memberOf(at, name), from as Schema)
  return last !== undefined
}

/** Through what may be left out, and through lists. */
function memberOf({ shape, def }: Schema, name: string): Schema | undefined {
  if (def.innerType) return memberOf(def.innerType, name)
  if (def.element) return memberOf(def.element, name)
  if (def.options) return def.options.map((option) => memberOf(option, name)).find((found) => found !== undefined)
  return shape?.[name] ?? def.valueType
}
