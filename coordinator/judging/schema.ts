import { hash } from 'node:crypto'
import type { JsonSchema } from '../workflows/json-schema.ts'
import { COMMENTS, pathsOf } from './cheap.ts'
import type { Origin } from './compile.ts'

/** A schema, ready to be judged by. */
export interface Schema {
  origin: Origin
  text: string
  /** The same for equal schemas of one origin. */
  key: string
  /** Largest number of ways through the schema for one value; undefined when there is no bound. */
  paths: number | undefined
}

/**
 * Largest schema of a type of `run`, as JSON. Compiled, 128 KiB are some 20 MB, which took half a second of processor
 * time.
 */
export const MOST_SCHEMA_CHARS = 128 * 1024
/** Larger schemas are compiled in a child process. */
const SMALL = 16 * 1024

/** Returns undefined for a schema that accepts everything. */
export function schemaOf(origin: Origin, schema: JsonSchema | boolean): Schema | undefined {
  if (schema === true || acceptsAnything(schema)) return undefined
  const text = JSON.stringify(schema)
  // A program asks as many questions as it likes, each with another schema: compiling those is never cheap.
  const mayBeCheap = origin === 'derived' && text.length <= SMALL
  return { origin, text, key: origin + hash('sha256', text), paths: mayBeCheap ? pathsOf(schema) : undefined }
}

function acceptsAnything(schema: JsonSchema | boolean): boolean {
  return typeof schema === 'object' && Object.keys(schema).every((keyword) => COMMENTS.includes(keyword))
}
