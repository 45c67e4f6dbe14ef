/**
 * postgres.js 3.4.9 with its handling of lost connections put right, at load time and in memory only.
 *
 * As published, a server that dies in the middle of a transaction ends the whole process (its own `rollback` is written
 * to a socket that is gone, from a timer, where nobody can catch it), later statements of that transaction may run
 * *outside* of any transaction on the next connection, and some statements are never answered. Open upstream as
 * porsager/postgres #1066, #1133, #1154, #1208 and #1216. This goes when a release has them; a text that is not found
 * stops the start.
 *
 * Texts in arrays are escaped in one pass as well, as callers choose what they hold. And a server that says nothing at
 * all is given up: when its machine vanishes, the system would wait 15 minutes for what is under way.
 */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'
import type Postgres from 'postgres'

interface Correction {
  file: 'connection.js' | 'index.js' | 'types.js'
  why: string
  find: string
  put: string
}

/** What an answer may take on its way. */
const SILENCE_MS = 2000

const CORRECTIONS: Correction[] = [
  {
    file: 'connection.js',
    why: 'a statement for a closed connection is refused, not written to nowhere',
    find: `    if (stream)
      return queryError(q, Errors.generic('COPY_IN_PROGRESS'`,
    put: `    if (!socket)
      return queryError(q, Errors.connection('CONNECTION_CLOSED', options)), true

    if (stream)
      return queryError(q, Errors.generic('COPY_IN_PROGRESS'`,
  },
  {
    file: 'connection.js',
    why: 'bytes gathered for a socket that went away are dropped; who waited for them has been told by closed()',
    find: `    const x = socket.write(chunk, fn)`,
    put: `    if (!socket) {
      chunk = nextWriteTimer = null
      return true
    }
    const x = socket.write(chunk, fn)`,
  },
  {
    file: 'connection.js',
    why: 'a server that accepts and hangs up is no reason to try for ever, nor are statements behind a reset one to wait for ever',
    find: `    if (initial)
      return reconnect()

    !hadError && (query || sent.length) && error(Errors.connection('CONNECTION_CLOSED', options, socket))`,
    put: `    if (initial && options.host.length > 1)
      return reconnect()

    ;(initial || query || sent.length) && error(Errors.connection('CONNECTION_CLOSED', options, socket))
    chunk = nextWriteTimer = query = results = errorResponse = null
    result = new Result()`,
  },
  {
    file: 'connection.js',
    why: 'the look-up of array types has no caller who would catch its failure',
    find: `      return fetchArrayTypes()
      }`,
    put: `      return fetchArrayTypes().catch(e => (errored(e), socket && socket.destroy()))
      }`,
  },
  {
    file: 'connection.js',
    why: 'poolers refuse start parameters or drop them: settings are said with the first statement',
    find: `      where a.typcategory = 'A'`,
    put: `      where a.typcategory = 'A' and (
        select count(set_config(name, value, false))
        from (values \${
          Object.entries(options.session).map(([name, value]) =>
            '(\\'' + name + '\\', \\'' + String(value).replaceAll('\\'', '\\'\\'') + '\\')').join(', ')
        }) s (name, value)
        where current_setting(name, true) is not null
      ) >= 0`,
  },
  {
    file: 'index.js',
    why: 'the same, of those that listen',
    find: `      fetch_types: false,
      onclose() {`,
    put: `      onclose() {`,
  },
  {
    file: 'index.js',
    why: 'who listens is told at once that nothing is heard',
    find: `  async function listen(name, fn, onlisten) {
    const listener = { fn, onlisten }`,
    put: `  async function listen(name, fn, onlisten, onlost) {
    const listener = { fn, onlisten, onlost }`,
  },
  {
    file: 'index.js',
    why: 'the same',
    find: `listeners.map(l => listen(name, l.fn, l.onlisten).catch(`,
    put: `listeners.map(l => (l.onlost && l.onlost(), listen(name, l.fn, l.onlisten, l.onlost)).catch(`,
  },
  {
    file: 'index.js',
    why: 'the same; the address of the database may say otherwise',
    find: `    types           : o.types || {},`,
    put: `    session         : Object.fromEntries(Object.entries(o.session).map(([k, v]) => [k, query[k] || v])),
    types           : o.types || {},`,
  },
  {
    file: 'connection.js',
    why: 'a server ends each statement by its own timeout; one that says nothing for longer than that is not there',
    find: `  function toBuffer(q) {`,
    put: `  function watch() {
    const timeout = +options.session.statement_timeout
    if (timeout && !silence)
      quiet = 0, silence = setInterval(look, 1000, timeout + ${SILENCE_MS}).unref()
  }

  // Counted in looks: those that a process has missed which stood still are no silence of the server.
  function look(most) {
    if (!query && !sent.length)
      return clearInterval(silence), silence = null
    if (++quiet * 1000 <= most || !socket)
      return
    const text = 'the database has said nothing for ' + quiet + ' s'
    socket.destroy(Object.assign(new Error(text), { code: 'ETIMEDOUT' }))
  }

  function toBuffer(q) {`,
  },
  {
    file: 'connection.js',
    why: 'the same',
    find: `        : (query = q, query.active = true)

      build(q)`,
    put: `        : (query = q, query.active = true)

      watch()
      build(q)`,
  },
  {
    file: 'connection.js',
    why: 'the same',
    find: `  function data(x) {
`,
    put: `  function data(x) {
    quiet = 0
`,
  },
  {
    file: 'connection.js',
    why: 'the same',
    find: `    , final = null

  const connection = {`,
    put: `    , final = null
    , silence = null
    , quiet = 0

  const connection = {`,
  },
  {
    file: 'index.js',
    why: 'a transaction ends with its connection, also when the connection is opened anew',
    find: `new Promise((_, reject) => connection.onclose = reject)`,
    put: `new Promise((_, reject) => connection.onclose = e => (lost = e, reject(e)))`,
  },
  {
    file: 'index.js',
    why: 'the same',
    find: `      , connection
      , prepare = null`,
    put: `      , connection
      , lost = null
      , prepare = null`,
  },
  {
    file: 'index.js',
    why: 'the same',
    find: `        q.catch(e => uncaughtError || (uncaughtError = e))
`,
    put: `        q.catch(e => uncaughtError || (uncaughtError = e))
        if (lost)
          return q.reject(lost)
`,
  },
  {
    file: 'types.js',
    why: 'texts in arrays cost by their bytes; a replacement for each quote blocks all others for long',
    find: `  return x
    .replace(escapeBackslash, '\\\\\\\\')
    .replace(escapeQuote, '\\\\"')
`,
    put: `  if (!/["\\\\]/.test(x))
    return x
  const from = Buffer.from(x)
  const to = Buffer.allocUnsafe(2 * from.length)
  let length = 0
  for (let i = 0; i < from.length; i++) {
    if (from[i] === 34 || from[i] === 92)
      to[length++] = 92
    to[length++] = from[i]
  }
  return to.toString('utf8', 0, length)
`,
  },
]

const FOLDER = '/postgres/src/'

/**
 * Loads the corrected postgres.js. It must be the first to do so, which is why only client.ts may import the package.
 */
export async function loadPostgres(): Promise<typeof Postgres> {
  const corrected = new Set<string>()
  const hooks = registerHooks({
    load(url, context, next) {
      const file =
        url.startsWith('file:') && url.includes(FOLDER) ? url.slice(url.lastIndexOf(FOLDER) + FOLDER.length) : ''
      const corrections = CORRECTIONS.filter((each) => each.file === file)
      if (corrections.length === 0) return next(url, context)
      corrected.add(file)
      return {
        format: 'module',
        shortCircuit: true,
        source: corrections.reduce(correct, readFileSync(fileURLToPath(url), 'utf8')),
      }
    },
  })
  try {
    const { default: postgres } = await import('postgres')
    if (corrected.size < 3)
      throw new Error(
        "The package 'postgres' was loaded before coordinator/db/client.ts could correct it: import it from there only (types excepted).",
      )
    return postgres
  } finally {
    hooks.deregister()
  }
}

function correct(source: string, { file, why, find, put }: Correction): string {
  if (source.split(find).length !== 2) {
    throw new Error(
      `postgres/src/${file} is not the text that coordinator/db/postgres-patch.ts knows (${why}): install postgres 3.4.9, or bring the corrections up to date.`,
    )
  }
  return source.replace(find, () => put)
}
