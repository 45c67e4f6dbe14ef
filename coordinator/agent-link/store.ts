import type { RunnerId } from '@windlass/shared/ids.ts'
import type { Unready } from '@windlass/shared/model/runner.ts'
import type { AgentFacts, Instance } from '@windlass/shared/wire/agent.ts'
import type { Db, Sql, Tx } from '../db/client.ts'
import { unnest } from '../db/unnest.ts'

export interface Hello {
  protocol: number
  version: string
  slots: number
  instance?: Instance | undefined
  /** By which its process counts the connection, if it does. */
  connection?: number | undefined
  facts?: AgentFacts | undefined
  /** The silence after which it ends its programs, if it says so. */
  fenceMs?: number | undefined
  /** How long ago its machine was started, if it says so. */
  bootAgeMs?: number | undefined
}

/** Silences of the start before, in milliseconds. */
export interface Silences {
  /** After it nothing of the start lives any more, unless it was told a longer fence. */
  leaseMs: number
  /** After it the start ends its programs, as it is about to be told. */
  fenceMs: number
  /** After it the start has gone, if its machine was started anew. */
  quietMs: number
}

export interface Entered {
  isIn: boolean
  /** Its process has said hello over a later connection, and is heard over that. */
  isGivenUp: boolean
  /** When it was let in. Milliseconds, to be compared with other times of the database alone. */
  at: number | null
  /** The longest silence that it may believe it is allowed, with what it is about to be told. */
  toldFenceMs: number
  /** The start that was let in before; null: none yet that had a name. */
  instance: string | null
  /** Its connection has ended, as far as is known. */
  hasLeft: boolean
  /** It was heard within its lease. */
  isHeard: boolean
  /** Since it was heard; null: never. What it said before may have been read so late. */
  heardAgoMs: number | null
  /** Null as well while one without a name speaks for the runner. */
  instanceHost: string | null
  instanceFolder: string | null
  instanceBoot: string | null
  /** The start that the database was last reconciled with; null: none yet, or it had no name. */
  reconciledInstance: string | null
  reconciledBoot: string | null
  reconciledProcess: string | null
  /** Counts the hellos that were let in, with this one if it was. */
  connection: number
}

/**
 * Takes a start of an agent for the one that speaks for its runner from now on, with what it says about itself; one
 * statement, so that of two that come at once the second sees the first. A start that does not know the one before it
 * is a copy. So is one on another machine, unless the one before was stopped and executes nothing, or has been silent
 * for longer than its lease, and than those of its runs: then its folder was moved. A machine that was started anew may
 * have given the disk of the folder another number: nothing of the boot before executes there. A clone of it says the
 * same, but its original was heard of since, or is when its next heartbeats are due. Where one of the two has no name,
 * nobody can tell a copy: it is let in when the one before has left and executes nothing. What a process says over a
 * connection that it has given up since is read late, and says nothing of now. A machine that was set back to a
 * snapshot of its memory counts from there on again, after a silence.
 */
export async function enter(
  db: Sql,
  id: RunnerId,
  hello: Hello,
  { leaseMs, fenceMs, quietMs }: Silences,
): Promise<Entered | undefined> {
  const { protocol, version, slots, instance, facts, fenceMs: obeyedMs = null, bootAgeMs = null } = hello
  const { connection = null } = hello
  const [row] = await db<Entered[]>`
    with found as (
      select id, instance, instance_host, instance_folder, instance_boot, connection,
             counting_process, instance_connection,
             reconciled_instance, reconciled_boot, reconciled_process,
             -- What it says that it obeys, but no more than it was ever told.
             greatest(${fenceMs}::int, least(told_fence_ms, ${obeyedMs}::int)) as told_fence_ms,
             disconnected_at is not null as has_left,
             exists (
               select from runner_intake i
               where i.runner_id = runners.id and i.state = 'draining' and i.by_kind = 'agent'
             ) as was_stopped,
             extract(epoch from now() - greatest(last_heartbeat_at, last_poll_at)) * 1000 as heard_ago_ms,
             -- Whoever was heard after this machine was started is on another one. A shorter silence shows nothing.
             (
               greatest(last_heartbeat_at, last_poll_at)
                 > now() - greatest(${bootAgeMs}::float8, ${quietMs}::float8) * interval '1 millisecond'
             ) is not true as is_of_before,
             (
               greatest(last_heartbeat_at, last_poll_at)
                 > now() - greatest(${leaseMs}::float8, told_fence_ms) * interval '1 millisecond'
             ) is true as is_heard,
             exists (
               select from placements p
               where p.runner_id = runners.id and p.accepted_at is not null and ${mayGoOn(db)}
             ) as executes
      from runners
      where id = ${id} and deregistered_at is null
      for no key update
    ),
    before as (
      select *,
             (is_heard and ${isOfLater(db, hello)}) is true as is_given_up
      from found
    ),
    entered as (
      update runners r
      set
        last_heartbeat_at   = now(),
        connected_at        = now(),
        disconnected_at     = null,
        disconnected_by     = null,
        protocol            = ${protocol},
        version             = ${version},
        slots               = ${slots},
        told_fence_ms       = b.told_fence_ms,
        ${facts ? factColumns(db, facts) : db``}
        instance            = coalesce(${instance?.id ?? null}, r.instance),
        instance_host       = ${instance?.host ?? null},
        instance_folder     = ${instance?.folder ?? null},
        instance_boot       = ${instance?.boot ?? null},
        instance_process    = ${instance?.process ?? null},
        instance_connection = ${connection}::int,
        counting_process    = ${instance?.process ?? null},
        connection          = r.connection + 1
      from before b
      where r.id = b.id
        and not b.is_given_up
        and ${mayFollow(db, instance)}
      returning extract(epoch from clock_timestamp()) * 1000 as at, r.connection
    )
    select entered.at is not null as is_in, is_given_up, entered.at::float8 as at, told_fence_ms, instance,
           instance_host, has_left, instance_folder, instance_boot, reconciled_instance, reconciled_boot,
           reconciled_process, is_heard, heard_ago_ms::float8 as heard_ago_ms,
           coalesce(entered.connection, before.connection) as connection
    from before
    left join entered on true`
  return row
}

/** The process has said hello over a later connection. */
const isOfLater = (db: Sql, { instance, connection }: Hello) => db`(
  instance = ${instance?.id ?? null}
  and counting_process = ${instance?.process ?? null}
  and instance_connection >= ${connection ?? null}::int
)`

const startsOf = (instance: Instance | undefined) => (instance ? [instance.id, ...instance.previous] : [])

/** The start may speak for the runner after the one before it, `b`. */
const mayFollow = (db: Sql, instance: Instance | undefined, known = startsOf(instance)) => db`
  case
    when b.instance is null or ${!instance} and b.instance_host is null then true
    when ${instance !== undefined} and b.instance <> all(${known}) then false
    when ${!instance} or b.instance_host is null then not b.executes and (b.has_left or not b.is_heard)
    else b.instance_host = ${instance?.host ?? ''}
        and (b.instance_boot is not distinct from ${instance?.boot ?? ''} or b.is_of_before)
      or b.instance_folder = ${instance?.folder ?? null}
        and b.instance_boot <> ${instance?.boot ?? ''} and b.is_of_before
      or not b.executes and (b.has_left and b.was_stopped or not b.is_heard)
  end`

/** Its lease is not over, with what is noted beside the placement: see `lengthenings_owed`. */
const mayGoOn = (db: Sql) => db`(
  p.lease_expires_at > now()
  or exists (
    select from lengthenings_owed o
    where o.run_id = p.run_id and o.epoch = p.epoch
      -- It ignores null.
      and greatest(p.lease_expires_at + o.forward_ms * interval '1 millisecond', o.least_until) > now()
  )
)`

/** Of what is in the way of an agent's work, all read it who ask for its runner, or why a run waits: 100 in a page. */
const MESSAGE_CHARS = 300
const CONTROLS = /[\p{Cc}\u2028\u2029]/gu

const shortened = ({ check, message }: Unready): Unready => ({
  check: check.replace(CONTROLS, ' '),
  message: message.slice(0, MESSAGE_CHARS).toWellFormed().replace(CONTROLS, ' '),
})

const factColumns = (db: Sql, { labels, platform, capabilities, isolation, unready }: AgentFacts) => db`
  labels       = ${labels},
  platform     = ${platform},
  capabilities = ${capabilities},
  isolation    = ${isolation ? db.json(isolation) : null},
  unready      = ${db.json(unready.map((each) => ({ ...shortened(each) })))},`

/** What the runner has is of this start from now on, unless another one has come meanwhile. */
export async function noteReconciled(db: Db, id: RunnerId, instance: Instance | undefined): Promise<void> {
  const { id: start = null, boot = null, process = null } = instance ?? {}
  await db`
    update runners
    set reconciled_instance = ${start}, reconciled_boot = ${boot}, reconciled_process = ${process}
    where id = ${id}
      and case when instance_host is null then null else instance end is not distinct from ${start}
      and instance_process is not distinct from ${process}`
}

/** Raises the longest fence that the agent may believe in, before the agent is told. Returns the stored value. */
export async function raiseFence(db: Db, id: RunnerId, fenceMs: number): Promise<number> {
  const [row] = await db<[{ toldFenceMs: number }?]>`
    update runners
    set told_fence_ms = greatest(told_fence_ms, ${fenceMs}::int)
    where id = ${id}
    returning told_fence_ms`
  return row?.toldFenceMs ?? fenceMs
}

/** Lowers it once the agent obeys a shorter fence. Returns false when another fence was told meanwhile. */
export async function lowerFence(db: Db, id: RunnerId, { from, to }: { from: number; to: number }): Promise<boolean> {
  const rows = await db`
    update runners
    set told_fence_ms = ${to}::int
    where id = ${id} and told_fence_ms = ${from}::int
    returning id`
  return rows.length > 0
}

/**
 * What has changed about an agent since its hello. A heartbeat that comes late over a connection given up meanwhile
 * leaves alone what a later hello said. Answers false when nothing was written: that, or somebody holds the row.
 */
export async function noteFacts(
  db: Db,
  { id, connection }: { id: RunnerId; connection: number },
  { slots, facts }: Pick<Partial<Hello>, 'slots' | 'facts'>,
): Promise<boolean> {
  const rows = await db`
    with free as materialized (
      select id
      from runners
      where id = ${id} and connection = ${connection}
      for no key update skip locked
    )
    update runners r
    set ${facts ? factColumns(db, facts) : db``} slots = coalesce(${slots ?? null}, r.slots)
    from free
    where r.id = free.id
    returning r.id`
  return rows.length > 0
}

/** Answers when one was refused the last time before, if that is less than a minute ago. */
export async function noteCopy(tx: Tx, id: RunnerId): Promise<{ isNews: boolean }> {
  const [row] = await tx<[{ isNews: boolean }?]>`
    with before as (
      select id, (copy_refused_at > now() - interval '1 minute') is not true as is_news
      from runners
      where id = ${id}
      for no key update
    )
    update runners r
    set copy_refused_at = now()
    from before
    where r.id = before.id
    returning before.is_news`
  return row ?? { isNews: false }
}

export interface Disconnection {
  runnerId: RunnerId
  by: 'agent' | 'silence' | 'coordinator'
  /** Which of its connections has ended. One that is connected again by now has a later one. */
  connection: number
}

export async function noteDisconnections(db: Db, ended: readonly Disconnection[]): Promise<void> {
  await db`
    with ended as (
      select *
      from ${unnest(db, 'e', ended, { runnerId: 'text', by: 'text', connection: 'int' })}
    ),
    locked as materialized (
      select id
      from runners
      where id in (select runner_id from ended)
      order by id
      for no key update
    )
    update runners r
    set disconnected_at = now(), disconnected_by = ended.by
    from locked
    join ended on ended.runner_id = locked.id
    where r.id = locked.id and r.connection = ended.connection`
}
