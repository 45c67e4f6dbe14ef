import { Ajv2020, type Options, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { JsonSchema } from '../workflows/json-schema.ts'
import { type Invalid, worst } from './invalid.ts'
import { knowNoHeirs, withoutHeirs } from './inherited-names.ts'
import { JSON_FORMATS, type JsonFormat } from './json-formats.ts'

/**
 * Author of a schema: we, from the types of a program; or a person or a library. What the standard allows and we would
 * never derive (keywords without a type, unknown keywords and formats) is no reason to refuse what others wrote.
 */
export type Origin = 'derived' | 'written'

/** Judges a value; `root` names it in the path: `input.packages[3].name`. */
export type Check = (value: unknown, root: string) => Invalid | null

/**
 * Refs stay calls: written out, definitions that share others grow with each use. One error is enough, and no error
 * holds what it is about. `code` must stay as it is: with `code.source` or `code.process` Ajv writes the `$id` of each
 * schema into a comment of the function that it makes, and what follows a `*` and a slash in it is executed.
 */
const BOUNDED = {
  inlineRefs: false,
  allErrors: false,
  verbose: false,
  validateSchema: false,
  // Each object inherits a `toString` and a `constructor`, which nobody has sent.
  ownProperties: true,
} as const
// `strictTuples`: a tuple of ours may have elements that can be left out, and any number after its last.
const DERIVED: Options = { ...BOUNDED, strict: true, allowUnionTypes: true, strictTuples: false }
// `strictNumbers`: what JSON cannot say would be stored as null.
const WRITTEN: Options = { ...BOUNDED, strict: false, strictNumbers: true, meta: false, logger: false }

/** Throws on a schema that is none. */
export function compile(origin: Origin, schema: JsonSchema | boolean): Check {
  return origin === 'derived' ? compileWith(DERIVED, schema) : compileWith(WRITTEN, withoutHeirs(asWritten(schema)))
}

/** Knows what a schema may look like. Learning that takes ten times as long as compiling one, so it is done once. */
let judgeOfSchemas: Ajv2020 | undefined

function asWritten(given: JsonSchema | boolean): JsonSchema | boolean {
  // Schemas of other drafts name another standard here, and hardly ever differ in anything else.
  const schema = typeof given === 'object' ? { ...given, $schema: undefined } : given
  judgeOfSchemas ??= new Ajv2020({ strict: false, logger: false })
  if (judgeOfSchemas.validateSchema(schema) !== true) throw new Error(judgeOfSchemas.errorsText())
  return schema
}

function compileWith(options: Options, schema: JsonSchema | boolean): Check {
  // An instance each: a shared one would keep every schema it has ever seen.
  const ajv = new Ajv2020(options)
  // What these keywords want to know of unions costs a look at every branch, also when one has fitted: with branches
  // that hold unions themselves, that doubles with each level of an honest value.
  ajv.opts.unevaluated = JSON.stringify(schema).includes('"unevaluated')
  addFormats.default(ajv, Object.keys(JSON_FORMATS) as JsonFormat[])
  knowNoHeirs(ajv)
  const validate: ValidateFunction = ajv.compile(schema)
  // An extension of Ajv: such a check answers with a promise, which would pass for a value that fits, and whose
  // rejection ends the process. Within a schema that has none Ajv refuses it itself.
  if ('$async' in validate && validate.$async) throw new Error('`$async` is not supported: leave it out')
  return (value, root) => (validate(value) ? null : worst(validate.errors ?? [], value, root))
}
