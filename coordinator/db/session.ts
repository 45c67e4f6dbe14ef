type Settings = Readonly<Record<string, string | number>>

/** Of a statement, where the address of the database says one in milliseconds. */
function limitIn(address: string): number | undefined {
  const said = new URL(address).searchParams.get('statement_timeout')
  return said !== null && /^[0-9]{1,9}$/.test(said) ? Number(said) : undefined
}

/**
 * An option of postgres-patch.ts: what a database or role may have otherwise, and poolers do not pass on. Times are in
 * milliseconds. One that the server does not know is left out.
 */
export function withSession(address: string, limitMs: number): { session: Settings } {
  const statementTimeoutMs = limitIn(address) ?? limitMs
  const session = {
    // One slow statement must not hold a connection, nor one lock a queue of callers, longer than anybody waits for an
    // answer.
    statement_timeout: statementTimeoutMs,
    lock_timeout: 10_000,
    // A coordinator that hangs inside a transaction, or whose host is gone, keeps its rows locked for everybody. Less
    // than others wait for a lock, and far less than a lease.
    idle_in_transaction_session_timeout: 8_000,
    // One that listens is idle for hours.
    idle_session_timeout: 0,
    // A client that stands still between the parts of a statement keeps its locks: there the server runs neither the
    // timeout of statements nor that of idle transactions. So a transaction lasts as long as two statements at their
    // limit at most; those of migrations, which have no limit, as long as they like. From PostgreSQL 17 on.
    transaction_timeout: 2 * statementTimeoutMs,
    // The same while the server waits for it to take an answer, and for a host that is gone in that moment. It counts
    // over TCP only; on the same machine the supervisor ends a coordinator that stands still.
    tcp_user_timeout: 20_000,
    tcp_keepalives_idle: 5,
    tcp_keepalives_interval: 2,
    tcp_keepalives_count: 3,
    // Our statements name rows by their keys. While the hot tables grow from nothing, or just after a restore, the
    // planner has no statistics and reads them whole to hash them: a claim of 250 runs took 27 ms in place of 4.
    // A plan for the arrays at hand is no better than the general one, and costs a millisecond each time.
    plan_cache_mode: 'force_generic_plan',
    enable_hashjoin: 'off',
    enable_mergejoin: 'off',
    enable_seqscan: 'off',
    // Up to PostgreSQL 17 a node that is off and has no other way costs 10,000,000,000, for which the server compiles
    // the statement each time: 0.8 s of a core for a trigger in place of 1.4 ms.
    jit: 'off',
    // The driver reads these forms only: of `SQL, DMY` it takes the day for the month.
    DateStyle: ISO_DATES,
    IntervalStyle: 'postgres',
    bytea_output: 'hex',
    extra_float_digits: 1,
    standard_conforming_strings: 'on',
    default_transaction_isolation: ISOLATION,
    default_transaction_deferrable: 'off',
  }
  return { session }
}

const ISO_DATES = 'ISO, MDY'
const ISOLATION = 'read committed'

/** Of those that speak `pg`. */
export const OF_PG_SESSIONS = `
  set DateStyle to '${ISO_DATES}';
  set default_transaction_isolation to '${ISOLATION}';
  set idle_session_timeout to 0`
