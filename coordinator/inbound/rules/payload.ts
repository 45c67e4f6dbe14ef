import { isUtf8 } from 'node:buffer'
import { hasMoreMarks, MOST_LEVELS, MOST_MARKS_OF_INPUT, nestsDeeper } from '@windlass/shared/json-nesting.ts'
import { fieldsOf } from './fields.ts'

/** What came in a body: the value, and its JSON text, which is the sender's own where it sent JSON. */
export type Payload = { value: unknown; text: string } | { invalid: string }

export type FormOf = 'github' | 'slack' | 'any'

/** A body as a program gets it. `form`: whose way of writing JSON into a form it is. */
export function readPayload(body: Buffer, contentType: string | undefined, form: FormOf): Payload {
  if (body.length === 0) return { value: null, text: 'null' }
  const type = (contentType ?? '').split(';')[0]!.trim().toLowerCase()
  const isText = isUtf8(body)
  if (isJson(type)) return isText ? parsed(body.toString('utf8')) : { invalid: 'The body is not valid UTF-8.' }
  if (type === 'application/x-www-form-urlencoded' && isText) return readForm(body, form)
  if (isText && (type.startsWith('text/') || /^application\/(.+\+)?xml$|^application\/(x-)?(ndjson|yaml)$/.test(type)))
    return whole({ text: body.toString('utf8') })
  if (type === '' && isText) {
    const json = parsed(body.toString('utf8'))
    return 'invalid' in json ? whole({ text: body.toString('utf8') }) : json
  }
  return whole({ base64: body.toString('base64'), contentType: contentType ?? null })
}

const isJson = (type: string) => type === 'application/json' || /^application\/.+\+json$/.test(type)

function whole(value: unknown): Payload {
  return { value, text: JSON.stringify(value) }
}

function parsed(given: string): Payload {
  const text = given.startsWith('\ufeff') ? given.slice(1) : given
  if (hasMoreMarks(text, MOST_MARKS_OF_INPUT)) return { invalid: 'The body holds too many values.' }
  if (nestsDeeper(text, MOST_LEVELS)) return { invalid: `The body nests deeper than ${MOST_LEVELS} levels.` }
  try {
    return { value: JSON.parse(text) as unknown, text }
  } catch {
    return { invalid: 'The body is not valid JSON.' }
  }
}

const MOST_FIELDS = 10_000

/** GitHub and Slack write JSON into the field `payload`; any other form is an object of strings. */
function readForm(body: Buffer, form: FormOf): Payload {
  const fields = fieldsOf(body, MOST_FIELDS)
  if (!fields) return { invalid: `The form holds more than ${MOST_FIELDS} fields.` }
  const [inner] = form === 'any' ? [] : [fields['payload']].flat()
  return inner === undefined ? whole(fields) : parsed(inner)
}
