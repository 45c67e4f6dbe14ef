import { FIELDS } from '@windlass/shared/ops/fields.ts'
import type { AnyOp } from '@windlass/shared/ops/op.ts'
import { pathNames } from '@windlass/shared/ops/fill-route.ts'

/** A field of a row's input as the command line sees it. */
export interface Field {
  name: string
  /** `--created-after`; for a field that wants JSON `--payload-json`. */
  flag: string
  /** A moment is a number of milliseconds to the service, and a date or `2d` to a person. */
  kind: 'text' | 'number' | 'moment' | 'boolean' | 'list' | 'json'
  isRequired: boolean
  description: string
  /** Values to choose from. */
  choices: string[] | undefined
}

// `--version` is the command line's own, and `--input` is the same in all commands that start runs.
const RENAMED: Record<string, string> = { version: 'workflow-version', input: 'input' }

const MOMENT = /milliseconds since the Unix epoch/i

/** The part of a zod schema that is read here. */
interface Schema {
  description?: string
  safeParse(value: unknown): { success: boolean }
  def: { type: string; innerType?: Schema; element?: Schema; entries?: Record<string, string>; options?: Schema[] }
}

/** Typed in order, without flags: names in the path but for the org, a global option, and those that the row names. */
export function positionals(row: AnyOp): string[] {
  return [...pathNames(row.path).filter((name) => name !== 'org'), ...Object.keys(row.cli?.args ?? {})]
}

/** Everything else. */
export function flagFields(row: AnyOp): Field[] {
  const given = [...positionals(row), 'org']
  const shape = Object.entries(row.input.shape) as unknown as [string, Schema][]
  return shape.filter(([name]) => !given.includes(name)).map(([name, schema]) => fieldOf(name, schema))
}

/** A field by itself, such as one of an object that the command line spreads out. */
export function fieldOf(name: string, schema: Schema): Field {
  const layers = layersOf(schema)
  const inner = layers.at(-1) ?? schema
  const plain = kindOf(inner)
  const element = plain === 'list' && inner.def.element ? inner.def.element : inner
  const said = layers.find((layer) => layer.description !== undefined)?.description ?? FIELDS[name]?.flag ?? ''
  const kind = plain === 'number' && MOMENT.test(said) ? 'moment' : plain
  return {
    name,
    flag: RENAMED[name] ?? kebab(name) + (kind === 'json' ? '-json' : ''),
    kind,
    isRequired: !schema.safeParse(undefined).success,
    description: said.replace(MOMENT, 'so long ago (2d), a date, or milliseconds since the Unix epoch'),
    choices: element.def.entries && Object.values(element.def.entries),
  }
}

/** A schema and what its `optional`, `default` and the like are wrapped around, outermost first. */
function layersOf(schema: Schema): Schema[] {
  return schema.def.innerType ? [schema, ...layersOf(schema.def.innerType)] : [schema]
}

function kindOf({ def }: Schema): Field['kind'] {
  if (def.type === 'string' || def.type === 'enum') return 'text'
  if (def.type === 'number' || def.type === 'int') return 'number'
  if (def.type === 'boolean') return 'boolean'
  if (def.type === 'array' && def.element && isPlain(def.element)) return 'list'
  if (def.type === 'union' && def.options?.every(isPlain)) return 'text'
  return 'json'
}

function isPlain(schema: Schema): boolean {
  return kindOf(layersOf(schema).at(-1) ?? schema) === 'text'
}

export function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
