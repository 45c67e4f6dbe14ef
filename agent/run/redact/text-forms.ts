import { inspect } from 'node:util'

// Which characters are escaped is the choice of each tool, so that each needs a form of its own. Here are those of the
// tools that most programs use; where nothing of a secret is to be escaped, all of them are the same.

/**
 * As written by hand, for a shell, in a URL, in JSON, and in JSON within JSON. Each is made character by character, and
 * there are always as many of them, in the same order.
 */
export function textForms(text: string): string[] {
  const json = JSON.stringify(text).slice(1, -1)
  const nested = [json, unicode(json, NOT_ASCII)].flatMap(quotedForms)
  const inner = escapedByLibraries(text).map((form) => JSON.stringify(form).slice(1, -1))
  return [
    text,
    ...shellForms(text),
    ...urlForms(text),
    ...quotedForms(text),
    ...nested,
    ...inner,
    ...bytesOfPython(text),
  ]
}

const NOT_ASCII = /[^ -~]/g
/** What Go and Rails escape besides, as it could end a script. */
const NOT_IN_HTML = /[^ -~]|[<>&]/g

function quotedForms(text: string): string[] {
  const json = JSON.stringify(text).slice(1, -1)
  // Which quotes Node puts around a text depends on all of it.
  const shown = ["'", String.raw`\'`].map((quote) => text.split("'").map(inspected).join(quote))
  const escaped = [
    unicode(json, NOT_ASCII),
    unicode(json, NOT_IN_HTML),
    unicode(json.replaceAll('/', '\\/'), NOT_ASCII),
  ]
  const slashed = json.replaceAll('/', '\\/')
  return [json, ...shown, slashed, ...escaped, ...escaped.map(upperEscapes), ...escapedByLibraries(text)]
}

/** JSON as Go and Rails, as Gson, and as .NET write it. */
function escapedByLibraries(text: string): string[] {
  const json = JSON.stringify(text).slice(1, -1)
  const dotNet = unicode(json.replaceAll(String.raw`\"`, '"'), /[^ -~]|[<>&'+`"]/g)
  return [unicode(json, /[<>&\u2028\u2029]/g), unicode(json, /[<>&='\u2028\u2029]/g), upperEscapes(dotNet)]
}

const inspected = (text: string) => inspect(text, { maxStringLength: null, breakLength: Infinity }).slice(1, -1)

const unicode = (text: string, what: RegExp) =>
  text.replace(what, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`)

const upperEscapes = (text: string) => text.replace(/\\u[0-9a-f]{4}/g, (each) => `\\u${each.slice(2).toUpperCase()}`)

/** What a URL escapes, apart from the sets of JavaScript's functions: none of these characters. */
const UNESCAPED_IN_URLS = [
  // Python's `quote`.
  '/',
  // Go's `PathEscape`, `UserPassword`, and the path of its `URL`.
  '$&+:=@',
  '$&+,;=',
  '$&+,/:;=@',
  // What RFC 3986 allows in a segment: Guava and Spring.
  "!$&'()*+,;=:@",
]

function urlForms(text: string): string[] {
  const component = encodeURIComponent(text)
  const strict = component.replace(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`)
  const ofOthers = UNESCAPED_IN_URLS.map((unescaped) =>
    strict.replace(/%[2-7][0-9A-F]/g, (each) => {
      const character = String.fromCharCode(Number.parseInt(each.slice(1), 16))
      return unescaped.includes(character) ? character : each
    }),
  )
  // Queries of Go and Python: unlike those of JavaScript they leave `~` as it is.
  const query = strict.replaceAll('%20', '+')
  const forms = [component, strict, encodeURI(text), formEncoded(text), inUserinfo(text), query, ...ofOthers]
  return [...forms, ...forms.map((form) => form.replace(/%[0-9A-F]{2}/g, (each) => each.toLowerCase()))]
}

const formEncoded = (text: string) => new URLSearchParams([['', text]]).toString().slice(1)

/** `https://user:secret@host`, as a URL writes it. */
function inUserinfo(text: string): string {
  const url = new URL('http://host')
  url.password = text
  return url.password
}

/**
 * Within single quotes (those of Python's `shlex` come second), within double ones (`export -p`), with backslashes
 * (`printf %q`), and within `$'…'`.
 */
function shellForms(text: string): string[] {
  const dollar = text.replace(/[\\'\p{Cc}]/gu, (each) => DOLLAR_ESCAPES[each] ?? octal(each))
  return [
    text.replaceAll("'", String.raw`'\''`),
    text.replaceAll("'", `'"'"'`),
    text.replace(/[$`"\\]/g, String.raw`\$&`),
    text.replace(/[\s!"$&'()*,;<>?[\\\]^`{|}]|(?<=[:=])~/g, String.raw`\$&`),
    dollar,
    // Where the shell knows no language (`LANG` is not set), as in most containers.
    dollar.replace(/[^\0-~]+/g, octal),
  ]
}

const DOLLAR_ESCAPES: Record<string, string> = {
  '\\': String.raw`\\`,
  "'": String.raw`\'`,
  '\x07': String.raw`\a`,
  '\b': String.raw`\b`,
  '\x1b': String.raw`\E`,
  '\f': String.raw`\f`,
  '\n': String.raw`\n`,
  '\r': String.raw`\r`,
  '\t': String.raw`\t`,
  '\v': String.raw`\v`,
}

const eachByte = (text: string, write: (byte: number) => string) => Array.from(Buffer.from(text), write).join('')

const octal = (text: string) => eachByte(text, (byte) => `\\${byte.toString(8).padStart(3, '0')}`)

/** `b'…'`, of which the quotes depend on all of it. */
function bytesOfPython(text: string): string[] {
  const shown = text
    .replace(/[\\\t\n\r]/g, (each) => DOLLAR_ESCAPES[each]!)
    .replace(/[^ -~]+/g, (each) => eachByte(each, (byte) => `\\x${byte.toString(16).padStart(2, '0')}`))
  return [shown, shown.replaceAll("'", String.raw`\'`)]
}
