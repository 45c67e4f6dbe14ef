import { createHash } from 'node:crypto'
import vm from 'node:vm'
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { type Invalid, worst } from './invalid.ts'
import { JSON_FORMATS, type JsonFormat } from './json-formats.ts'
import type { JsonSchema } from './json-schema.ts'

export type { Invalid } from './invalid.ts'

/** Judges a value; `root` names it in the path: `input.packages[3].name`. */
export type Validator = (value: unknown, root?: string) => Invalid | null

const KEPT = 500
// A pattern is the customer's and may backtrack for ever; an honest check takes well under a millisecond.
const PATTERN_DEADLINE_MS = 250
const kept = new Map<string, Validator | undefined>()

/** The validator of a schema that we have derived, or undefined when it accepts everything anyway. Throws on a schema that is none. */
export function validatorOf(schema: JsonSchema | boolean): Validator | undefined {
  return keptValidator('derived', schema, compile)
}

/**
 * The same for a schema that a person or a library has written: what the standard allows and we would never derive (keywords
 * without a type, unknown keywords and formats) is no reason to refuse it.
 */
export function validatorOfWritten(schema: JsonSchema | boolean): Validator | undefined {
  return keptValidator('written', schema, compileWritten)
}

function keptValidator(
  origin: string,
  schema: JsonSchema | boolean,
  make: (schema: JsonSchema | boolean) => Validator,
): Validator | undefined {
  if (schema === true || acceptsAnything(schema)) return undefined
  const key = origin + createHash('sha256').update(JSON.stringify(schema)).digest('hex')
  const known = kept.get(key)
  const validator = known ?? make(schema)
  // Taken out and put in again: the oldest key is then the one that was not used for longest.
  kept.delete(key)
  kept.set(key, validator)
  for (const oldest of kept.keys()) {
    if (kept.size <= KEPT) break
    kept.delete(oldest)
  }
  return validator
}

function acceptsAnything(schema: JsonSchema | boolean): boolean {
  const comments = ['$schema', 'title', 'description', 'default', 'examples', 'deprecated']
  return typeof schema === 'object' && Object.keys(schema).every((keyword) => comments.includes(keyword))
}

function compile(schema: JsonSchema | boolean): Validator {
  // An instance each: a shared one would keep every schema it has ever seen.
  const ajv = new Ajv2020({
    strict: true,
    allowUnionTypes: true,
    verbose: true,
    allErrors: false,
    validateSchema: false,
  })
  addFormats.default(ajv, Object.keys(JSON_FORMATS) as JsonFormat[])
  const validate = ajv.compile(schema)
  return judge(validate, hasPattern(schema) ? guarded(validate) : (value: unknown) => validate(value))
}

/** Knows what a schema may look like. Learning that takes ten times as long as compiling a schema, so it is done once. */
let judgeOfSchemas: Ajv2020 | undefined

function compileWritten(given: JsonSchema | boolean): Validator {
  // Schemas of other drafts name another standard here, and hardly ever differ in anything else.
  const schema = typeof given === 'object' ? { ...given, $schema: undefined } : given
  judgeOfSchemas ??= new Ajv2020({ strict: false, logger: false })
  if (judgeOfSchemas.validateSchema(schema) !== true) throw new Error(judgeOfSchemas.errorsText())
  // `strictNumbers`: what JSON cannot say would be stored as null.
  const options = { strict: false, strictNumbers: true, validateSchema: false, meta: false } as const
  const ajv = new Ajv2020({ ...options, verbose: true, allErrors: false, logger: false })
  addFormats.default(ajv, Object.keys(JSON_FORMATS) as JsonFormat[])
  const validate = ajv.compile(schema)
  // Not only patterns can take for ever: so can `uniqueItems`, `patternProperties`, and a schema that refers to itself.
  return judge(validate, guarded(validate))
}

function judge(validate: ValidateFunction, check: (value: unknown) => boolean | 'too slow'): Validator {
  return (value, root = '') => {
    const fits = check(value)
    if (fits === true) return null
    return fits === 'too slow' ? tooSlow(root) : worst(validate.errors ?? ([] as ErrorObject[]), value, root)
  }
}

function hasPattern(schema: JsonSchema | boolean): boolean {
  return JSON.stringify(schema).includes('"pattern":')
}

/** Runs the check under V8's watchdog, which also stops a regular expression in the middle. Costs 0.2 ms. */
function guarded(validate: ValidateFunction): (value: unknown) => boolean | 'too slow' {
  const box: { check?: () => void } = {}
  const context = vm.createContext(box)
  const script = new vm.Script('check()')
  return (value) => {
    let fits = false
    box.check = () => {
      fits = validate(value)
    }
    try {
      script.runInContext(context, { timeout: PATTERN_DEADLINE_MS })
      return fits
    } catch (error) {
      // An error of the other context, hence no instance of our Error.
      if (isTimeout(error)) return 'too slow'
      throw error
    } finally {
      delete box.check
    }
  }
}

function isTimeout(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
}

function tooSlow(root: string): Invalid {
  return {
    path: root,
    message: `takes longer than ${PATTERN_DEADLINE_MS} ms to match the patterns of its schema: shorten the value or simplify \`@pattern\``,
  }
}
