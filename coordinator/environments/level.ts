import { Fault } from '@windlass/shared/errors.ts'
import type { EnvironmentId, OrgId } from '@windlass/shared/ids.ts'
import type { Sql, Tx } from '../db/client.ts'
import type { Level } from './row.ts'
import * as store from './store.ts'

/** The level that a caller names: an environment, or nothing for the org itself. Undefined: there is none. */
export async function findLevel(sql: Sql, orgId: OrgId, ref: string | undefined): Promise<Level | undefined> {
  if (ref === undefined) return { orgId, environment: '' }
  const found = await store.findEnvironment(sql, orgId, ref)
  return found && { orgId, environment: found.name }
}

export async function environmentId(sql: Sql, orgId: OrgId, ref: string): Promise<EnvironmentId | undefined> {
  return (await store.findEnvironment(sql, orgId, ref))?.id
}

/** The same, locked: nobody else changes anything of the org until the end of the transaction. Throws NOT_FOUND. */
export async function lockLevel(tx: Tx, orgId: OrgId, ref: string | undefined): Promise<Level> {
  await store.lockOrg(tx, orgId)
  const level = await findLevel(tx, orgId, ref)
  if (!level) throw noEnvironment(ref!)
  return level
}

export function noEnvironment(environment: string): Fault {
  const message = `There is no environment \`${environment}\` in this org; \`windlass env list\` shows those there are.`
  return new Fault('NOT_FOUND', { environment }, message)
}

/** As a person writes it. */
export function levelText({ environment }: Pick<Level, 'environment'>): string {
  return environment === '' ? 'the org' : `the environment \`${environment}\``
}

const MOST_NAMES = 200
/** With as much again on the other level a program can still start programs: Linux takes 2 MiB of arguments and environment. */
const MOST_BYTES = 512 * 1024
/** Two levels make 128 KiB, which is what an agent takes: looking for them in all that a run tells takes a thousand times the memory. */
const MOST_SECRET_BYTES = 64 * 1024

/** Throws when more stands on a level than may; called behind the change, in its transaction. */
export async function assertFits(tx: Tx, level: Level): Promise<void> {
  const { names, bytes, secretBytes } = await store.sizeOf(tx, level)
  if (names > MOST_NAMES)
    throw new Fault(
      'VALIDATION_FAILED',
      { path: 'name', limit: MOST_NAMES },
      `name: ${levelText(level)} has ${MOST_NAMES} variables and secrets, and may have no more. Delete one that is not used.`,
    )
  if (bytes > MOST_BYTES)
    throw new Fault(
      'PAYLOAD_TOO_LARGE',
      { path: 'value', bytes, limitBytes: MOST_BYTES },
      `value: all variables and secrets of ${levelText(level)} would have ${bytes} bytes together, and may have ${MOST_BYTES}. Let the program fetch what is large.`,
    )
  if (secretBytes > MOST_SECRET_BYTES)
    throw new Fault(
      'PAYLOAD_TOO_LARGE',
      { path: 'value', bytes: secretBytes, limitBytes: MOST_SECRET_BYTES },
      `value: all secrets of ${levelText(level)} would have ${secretBytes} bytes together, and may have ${MOST_SECRET_BYTES}. Keep credentials there, and what is large elsewhere.`,
    )
}
