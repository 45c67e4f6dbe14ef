/** Access to the database. Nothing else imports postgres.js or pg, except for their types. */
import { type LookupFunction, Socket } from 'node:net'
import { Pool, type PoolClient } from 'pg'
import type Postgres from 'postgres'
import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import { type Addresses, createAddresses } from './addresses.ts'
import { OF_PG_SESSIONS, withSession } from './session.ts'
import { loadPostgres } from './postgres-patch.ts'

const postgres = await loadPostgres()
/** For all connections of this process. */
const shared = createAddresses()

/** Either of the two: what a store's function takes when it does not mind. */
export type Sql = Postgres.ISql
/** A transaction. Inside `begin` touch only this. */
export type Tx = Postgres.TransactionSql
/**
 * The pool. `reserve` is left out on purpose: in postgres.js 3.4.9 a reservation made while the server is away leaks its
 * connection. Use `begin`.
 */
export interface Db extends Sql {
  begin: Postgres.Sql['begin']
  /**
   * Heard again by itself after a lost connection; `onListen` is called each time, since rings may have been missed.
   * `onLost` is called for each connection that was lost or refused.
   */
  listen(
    channel: string,
    onNotify: (payload: string) => void,
    onListen?: () => void,
    onLost?: () => void,
  ): Postgres.ListenRequest
}

export interface Database {
  url: string
  db: Db
  /** Lets statements under way finish for 5 s, then cuts them off. */
  close(): Promise<void>
}

export interface DatabaseOptions {
  url: string
  /** Connections at most; they are opened as they are needed. */
  max?: number
  log: Log
  /** Zero: none. */
  statementTimeoutMs?: number
  connectTimeoutS?: number
  addresses?: Addresses
}

/** A statement that the server refused, with its SQLSTATE in `code` and `constraint_name`, `detail` … where it gives them. */
export const PostgresError = postgres.PostgresError

/**
 * bigint, numeric and count(*) arrive as strings: a number would lose digits. Cast with `::int`, or keep the string.
 * Settings of a session are said with its first statement, see postgres-patch.ts: poolers refuse start parameters that
 * they do not know, or drop them.
 */
export function openDatabase(options: DatabaseOptions): Database {
  const { url, max = 10, log, statementTimeoutMs = 30_000, connectTimeoutS = 10, addresses = shared } = options
  const { address, host } = splitHost(url)
  const sql = postgres(address, {
    ...(host && { host }),
    max,
    // Keys of columns only. `postgres.camel` would rewrite the keys inside users' jsonb too.
    transform: { column: { from: postgres.toCamel, to: postgres.fromCamel } },
    connect_timeout: connectTimeoutS,
    // With them goes the first statement.
    fetch_types: true,
    // Seconds. A server that vanished shows by ten unanswered probes, one a second: the connection that only listens
    // is noticed after 25 s.
    keep_alive: 15,
    // Seconds. A killed server is back within 0.2 s; with the default of up to 20 s we would stand beside it and wait. While
    // it is away each attempt tells one waiting statement so: the shorter the pause, the sooner all of them know.
    backoff: () => 0.025 + Math.random() * 0.075,
    onnotice: (notice) => log.debug('database.notice', { notice: notice.message }),
    onclose: (connection) => log.debug('database.connection.closed', { connection }),
    connection: { application_name: 'windlass' },
    ...withSession(address, statementTimeoutMs),
    ...withLookup((socket) => addresses.lookupFor(socket, log)),
  })
  return { url, db: sql, close: () => sql.end({ timeout: 5 }) }
}

/** An option of postgres-host-corrections.ts. */
const withLookup = (lookupFor: (socket: Socket) => LookupFunction) => ({ lookupFor })

export interface PgPoolOptions {
  /** What it is for, as the server and the log see it. */
  name?: string
  max?: number
  log: Log
  /** After so long a statement is given up with its connection; none by default. */
  queryTimeoutMs?: number
  addresses?: Addresses
}

/** For what speaks `pg`: graphile-worker, and the limits. Close it with `pool.end()`. */
export function openPgPool(url: string, options: PgPoolOptions): Pool {
  const { name = 'jobs', max = 10, log, queryTimeoutMs, addresses = shared } = options
  const pool = new Pool({
    connectionString: url,
    max,
    application_name: `windlass ${name}`,
    connectionTimeoutMillis: 10_000,
    ...(queryTimeoutMs !== undefined && { query_timeout: queryTimeoutMs }),
    keepAlive: true,
    stream: () => aSocket(addresses, log),
    verify: (client, done) => client.query(OF_PG_SESSIONS, (error) => done(error ?? undefined)),
  })
  const onLoss = (error: Error) => log.warn('database.connection.lost', { pool: name, reason: error.message })
  // Without a listener Node ends the process: the pool speaks for idle clients, each client for itself while it is lent out.
  pool.on('error', onLoss)
  pool.on('connect', (client) => {
    client.on('error', onLoss)
    if (queryTimeoutMs !== undefined) endWithTimeout(client)
  })
  return pool
}

/** `pg` connects it by a port and a host, or by the path of a unix socket. */
function aSocket(addresses: Addresses, log: Log): Socket {
  const socket = new Socket()
  const connect = socket.connect.bind(socket)
  const lookup = addresses.lookupFor(socket, log)
  return Object.assign(socket, {
    connect: (to: number | string, host?: string) =>
      typeof to === 'string' ? connect(to) : connect({ port: to, ...(host !== undefined && { host }), lookup }),
  })
}

/** `pg` says that a query took too long and lends its connection on, where the next one waits behind it. */
function endWithTimeout(client: PoolClient): void {
  const query = client.query.bind(client) as (...args: unknown[]) => unknown
  const endOn = (error: unknown) => {
    // Its own `end` would wait for what is under way.
    if (error instanceof Error && error.message === 'Query read timeout')
      (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy()
  }
  Object.assign(client, {
    query(...args: unknown[]) {
      const last = args.at(-1)
      if (typeof last === 'function') {
        const done = (error: unknown, result: unknown): unknown => (
          endOn(error),
          Reflect.apply(last, null, [error, result])
        )
        return query(...args.slice(0, -1), done)
      }
      const answer = query(...args)
      if (answer instanceof Promise) answer.catch(endOn)
      return answer
    },
  })
}

const LOSSES = new Set([
  // postgres.js
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_DESTROYED',
  'CONNECT_TIMEOUT',
  // the socket; ENOENT: there is no unix socket while the server is down
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOENT',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  // the server: shut down, crashed, starting up, idle in a transaction or in it for too long, all sessions taken
  '57P01',
  '57P02',
  '57P03',
  '25P03',
  '25P04',
  '53300',
])
const LOSS_TEXTS =
  /^Connection terminated|^timeout exceeded when trying to connect|Client has encountered a connection error/

/**
 * True when the server was not there or went away, false when it refused the statement. Trying again makes sense, with a
 * deadline; but a statement that was under way may have been committed all the same, so only one that may run twice.
 */
export function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if ('isOfConnection' in error || isSessionRefused(error)) return true
  if ('code' in error && typeof error.code === 'string') {
    // Class 08: connection exceptions. 08P01 is a bad message, so a fault of ours, and would fail for ever.
    // Also what a missing file says: only a socket that is not there is a server that is not there.
    if (error.code === 'ENOENT') return 'syscall' in error && error.syscall === 'connect'
    if (LOSSES.has(error.code) || (/^08...$/.test(error.code) && error.code !== '08P01')) return true
  }
  if (error instanceof AggregateError) return error.errors.some(isConnectionLoss)
  return LOSS_TEXTS.test(error.message) || isConnectionLoss(error.cause)
}

/**
 * The server ended the session, or never let it begin, whatever its code says: a password that was changed meanwhile, a
 * database that takes no more, a pooler whose server is away. Others go on over the sessions that they have.
 */
function isSessionRefused(error: Error): boolean {
  return 'severity' in error && (error.severity === 'FATAL' || error.severity === 'PANIC')
}

/** SQLSTATE classes that speak of the server: read-only, rolled back, no room, locked, stopped by an operator, its disk. */
const OF_THE_SERVER = /^(25|40|53|55|57|58)...$/

/** True when the same statement may well succeed later, since nothing was wrong with what it said. */
export function mayPass(error: unknown): boolean {
  if (isConnectionLoss(error)) return true
  return error instanceof Error && 'code' in error && OF_THE_SERVER.test(String(error.code))
}

/**
 * True when it says nothing of what was to be written, however often: others hold it, or the server takes nothing, has
 * no room or no disk. That it has no memory (53200) may also be of one value that takes too much, but not where it is
 * the memory that all sessions share: the table of locks is full.
 */
export function isOfOthers(error: unknown): boolean {
  if (!(error instanceof Error && 'code' in error)) return false
  if (error.code === '53200') return 'file' in error && OF_SHARED_MEMORY.has(error.file)
  return /^(25006|53...|(55|58)...)$/.test(String(error.code))
}

/** Where the server says so in its source: the words of an error are in its language, and functions come and go. */
const OF_SHARED_MEMORY: ReadonlySet<unknown> = new Set(['lock.c', 'predicate.c', 'shmem.c'])

/** SQLSTATE classes that speak of what was to be written: values, constraints, sizes. */
const OF_THE_VALUES = /^(22|23|54)...$/
/** What Node and postgres.js say of values: not of the right type, too long, too many. */
const CODES_OF_VALUES =
  /^(|ERR_(INVALID|OUT_OF_RANGE|STRING_TOO_LONG|ENCODING|ASSERTION)\w*|MAX_PARAMETERS_EXCEEDED|UNDEFINED_VALUE)$/

/**
 * True when what was to be written can never be, as what is given up for that is lost. What our own code throws over
 * the values is the same each time. All else may have a cause that passes: of the server's errors those of few classes
 * are meant, and of the system's none, whose codes have no end.
 */
export function isOfTheValues(error: unknown): boolean {
  if (!(error instanceof Error) || isConnectionLoss(error) || lacksPartition(error)) return false
  if (error.name === 'AbortError' || error.name === 'TimeoutError' || 'syscall' in error) return false
  const code = 'code' in error ? String(error.code) : ''
  if (error instanceof Fault) return code !== 'UNAVAILABLE'
  return OF_THE_VALUES.test(code) || CODES_OF_VALUES.test(code)
}

/** There is no partition yet for a row: see partitions.ts. A check that a row fails has a name. */
export function lacksPartition(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    error.code === '23514' &&
    'routine' in error &&
    error.routine === 'ExecFindPartition'
  )
}

/** Somebody else held a lock for longer than the session waits: nothing was done. */
export function isLockTimeout(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '55P03'
}

/** A statement took longer than the session allows, or an operator ended it: nothing was done. */
export function isStatementTimeout(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '57014'
}

/** Two transactions waited for each other and this one was chosen to give way: nothing of it stays, so it may run again. */
export function isDeadlock(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '40P01'
}

/** postgres.js would send `?host=/folder/of/socket`, libpq's way to name a unix socket, to the server as a setting. */
function splitHost(url: string): { address: string; host: string | undefined } {
  const parsed = new URL(url)
  const host = parsed.searchParams.get('host') ?? undefined
  parsed.searchParams.delete('host')
  // The driver would look for a host in it.
  parsed.hash = ''
  return { address: parsed.href, host }
}
