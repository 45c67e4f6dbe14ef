/** What is put right in postgres.js 3.4.9, see postgres-patch.ts. */
export interface Correction {
  file: 'connection.js' | 'index.js' | 'types.js'
  why: string
  find: string
  put: string
}

/** What an answer may take on its way. */
const SILENCE_MS = 2000

/** Of those that one place in the code composes, a connection keeps so many prepared. */
const MOST_TEXTS = 8

/** Each text stands in its file once. */
export const CORRECTIONS: readonly Correction[] = [
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
    why: 'a server that accepts and hangs up is no reason to try for ever, and no statement waits behind a reset one',
    find: `    if (initial)
      return reconnect()

    !hadError && (query || sent.length) && error(Errors.connection('CONNECTION_CLOSED', options, socket))`,
    put: `    if (initial && options.host.length > 1)
      return reconnect()

    ;(initial || query || sent.length) && error(Errors.connection('CONNECTION_CLOSED', options, socket))
    chunk = nextWriteTimer = query = results = errorResponse = null
    isNew = true
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
    const text = 'the database has said nothing for ' + quiet + ' s over this connection' +
      (isNew ? ', from its begin on: a pooler in between may lend too few sessions' : '')
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
    , isNew = true

  const connection = {`,
  },
  {
    file: 'connection.js',
    why: 'the same; a pooler answers the login, and lets the first statement wait until it has a session to lend',
    find: `    types.forEach(({ oid, typarray }) => addArrayType(oid, typarray))`,
    put: `    isNew = false
    types.forEach(({ oid, typarray }) => addArrayType(oid, typarray))`,
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
    file: 'connection.js',
    why: 'callers compose texts, by filters: a server keeps each that is prepared, with a plan of up to 0.4 MiB',
    find: `    query.prepare && (statements[query.signature] = query.statement)
`,
    put: `    query.prepare && keep(query)
`,
  },
  {
    file: 'connection.js',
    why: 'the same',
    find: `  function RowDescription(x) {`,
    put: `  // A place in the code has one text, or composes some.
  function keep({ strings, signature, statement }) {
    // The same was prepared while this was on its way: only without parameters these do not wait for each other.
    const { name: former } = statements[signature] || statement
    former !== statement.name && letGo(former)
    statements[signature] = statement
    const own = composed.get(strings) || composed.set(strings, new Set()).get(strings)
    own.add(signature)
    if (own.size <= ${MOST_TEXTS})
      return
    const [oldest] = own
    own.delete(oldest)
    const { name } = statements[oldest] || statement
    delete statements[oldest]
    name !== statement.name && letGo(name)
  }

  function letGo(name) {
    write(b().C().str('S').str(name + b.N).end())
  }

  function RowDescription(x) {`,
  },
  {
    file: 'connection.js',
    why: 'the same; those used last are kept, by the place that had them prepared',
    find: `    q.describeFirst = q.onlyDescribe ||`,
    put: `    const own = q.prepared && composed.get(q.strings)
    own && own.size > 1 && own.delete(q.signature) && own.add(q.signature)
    q.describeFirst = q.onlyDescribe ||`,
  },
  {
    file: 'connection.js',
    why: 'the same; nobody waits for the end of a statement',
    find: `  function CloseComplete() {
`,
    put: `  function CloseComplete() {
    if (!query || !query.cursorFn)
      return
`,
  },
  {
    file: 'connection.js',
    why: 'the same',
    find: `    , statements = {}
`,
    put: `    , statements = {}
    , composed = new Map()
`,
  },
  {
    file: 'connection.js',
    why: 'the same',
    find: `      statements = {}
`,
    put: `      statements = {}
      composed.clear()
`,
  },
  {
    file: 'connection.js',
    why: 'what ends a connection, or lets none begin, bears a mark: its codes are those of sockets, TLS and our own',
    find: `  function error(err) {
`,
    put: `  function ofConnection(err) {
    return err && typeof err === 'object' ? Object.defineProperty(err, 'isOfConnection', { value: true }) : err
  }

  function error(err) {
    ofConnection(err)
`,
  },
  {
    file: 'connection.js',
    why: 'the same; nothing of a first statement is sent before it is begun, and then it is its values that fail',
    find: `(queryError(initial, err), initial = null)`,
    put: `(queryError(initial, initial === query ? err : ofConnection(err)), initial = null)`,
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
