/** Whether this server and this role will do: said at the start, before anything is made, with what to do about it. */
import type { Log } from '@windlass/shared/log.ts'
import type { Sql } from './client.ts'

interface Facts {
  database: string
  encoding: string
  isNew: boolean
  /** What somebody has to say who may, where a right is missing. */
  missing: string | null
  role: string
  /** The owner of the tables, where this role has none of its rights. */
  foreign: string | null
}

/**
 * Throws for a database that could not take what we write, or in which our tables cannot be made. One of another
 * encoding that is in use has gone well until now; a start that refuses it would be worse than what it cannot keep.
 */
export async function refuseUnfit(sql: Sql, log: Log): Promise<void> {
  const [facts] = await sql<[Facts]>`
    select current_database() as database, current_setting('server_encoding') as encoding,
           to_regclass('windlass_migrations') is null as is_new,
           case
             when current_schema() is null then (
               select format(
                 case
                   when n.oid is null then 'create schema %1$I authorization %2$I'
                   else 'grant usage, create on schema %1$I to %2$I'
                 end,
                 s.name, current_user
               )
               from (
                 select replace(trim(both ' "' from part), '$user', current_user) as name, nth
                 from unnest(string_to_array(current_setting('search_path'), ',')) with ordinality u (part, nth)
               ) s
               left join pg_namespace n on n.nspname = s.name
               order by n.oid is null, s.nth
               limit 1
             )
             when not has_schema_privilege(current_schema(), 'create')
               then format('grant create on schema %I to %I', current_schema(), current_user)
             when to_regclass('graphile_worker.migrations') is null
               and not has_database_privilege(current_database(), 'create')
               then format('grant create on database %I to %I', current_database(), current_user)
           end as missing,
           current_user as role,
           (
             select pg_get_userbyid(relowner) from pg_class
             where oid = to_regclass('windlass_migrations') and not pg_has_role(relowner, 'usage')
           ) as foreign`
  const { database, encoding, isNew, missing, role, foreign } = facts
  if (encoding !== 'UTF8') {
    const what = `The database "${database}" has the encoding ${encoding}, and Windlass keeps texts of all languages`
    if (isNew) throw new Error(`${what}. ${ANOTHER}`)
    log.warn('database.encoding', { encoding, reason: `${what}: some cannot be kept. ${ANOTHER}` })
  }
  if (foreign !== null) throw new Error(foreignTables(foreign, role))
  if (missing !== null) throw new Error(`${RIGHT} Have its owner say, in this database: \`${missing};\``)
}

/** The role that restores a dump owns what is in it. Rights to its tables do not serve: partitions are made as well. */
const foreignTables = (owner: string, role: string) =>
  `The tables of Windlass in this database belong to the role "${owner}", and WINDLASS_DATABASE_URL ` +
  `names "${role}". A backup has to be restored for the role of the coordinators: ` +
  `\`pg_restore --no-owner --role=${role} …\` into an empty database.`

const ANOTHER =
  "Make one with `create database <name> encoding 'UTF8' locale 'C' template template0`, and name that in " +
  'WINDLASS_DATABASE_URL.'
const RIGHT = 'The role of WINDLASS_DATABASE_URL may not make the tables of Windlass, or the schema of its jobs.'

/** Besides WINDLASS_DATABASE_CONNECTIONS: for runs 13, jobs 5, limits 2, notices 1, looks whether it is there 1. */
export const OTHER_CONNECTIONS = 22
const LEAST_CONNECTIONS = 4

interface Room {
  most: number
  reserved: number
  ofRole: number
  ofDatabase: number
  isSuper: boolean
}

/**
 * Says so where the server has fewer sessions than this coordinator may want: whoever opens one last gets none, for
 * good, and that may be the jobs. It starts all the same, as it seldom wants all of them.
 */
export async function warnOfRoom(sql: Sql, log: Log, connections: number): Promise<void> {
  const [room] = await sql<[Room]>`
    select current_setting('max_connections')::int as most,
           current_setting('superuser_reserved_connections')::int
             + coalesce(current_setting('reserved_connections', true)::int, 0) as reserved,
           r.rolconnlimit as of_role, d.datconnlimit as of_database, r.rolsuper as is_super
    from pg_roles r, pg_database d
    where r.rolname = session_user and d.datname = current_database()`
  const wanted = connections + OTHER_CONNECTIONS
  const [least] = limitsOf(room).sort((a, b) => a.room - b.room)
  if (!least || least.room >= wanted) return
  const less = `lower WINDLASS_DATABASE_CONNECTIONS from ${connections} to ${LEAST_CONNECTIONS} at least`
  log.warn('database.connections.few', {
    wanted,
    room: least.room,
    reason: `each coordinator opens up to ${wanted} connections, and ${least.reason}`,
    advice: `${least.raise(wanted)}, for each coordinator, or ${less}`,
  })
}

interface Limit {
  room: number
  reason: string
  raise: (wanted: number) => string
}

/** A superuser has the reserved sessions too, and no limit of a role or database. */
function limitsOf({ most, reserved, ofRole, ofDatabase, isSuper }: Room): Limit[] {
  const forOthers = isSuper ? 0 : reserved
  const ofServer: Limit = {
    room: most - forOthers,
    reason: `max_connections of PostgreSQL is ${most}, with ${forOthers} of them reserved for superusers`,
    raise: (wanted) => `set max_connections to ${wanted + forOthers} at least and restart PostgreSQL`,
  }
  const others = isSuper ? [] : [limitOf('role', ofRole), limitOf('database', ofDatabase)]
  // −1 is none.
  return [ofServer, ...others.filter(({ room }) => room >= 0)]
}

const limitOf = (what: 'role' | 'database', room: number): Limit => ({
  room,
  reason: `the connection limit of its ${what} is ${room}`,
  raise: (wanted) => `\`alter ${what} <name> connection limit ${wanted}\``,
})
