import type { Command } from 'commander'
import type { Admin } from '@windlass/coordinator/admin/open.ts'
import { didYouMean } from '@windlass/shared/did-you-mean.ts'
import { durationMs } from '@windlass/shared/model/duration.ts'
import { type Role, ROLES, type Scope, SCOPES } from '@windlass/shared/scopes.ts'
import { Failure } from '../failure.ts'
import { does, type Session } from '../session.ts'
import { withAdmin } from './admin-database.ts'

export interface AdminFlags {
  databaseUrl?: string
  org?: string
  name?: string
  role?: string
  scope?: string[]
  expires?: string
  for?: string
}

export interface AdminCall {
  admin: Admin
  session: Session
}

/**
 * Binds what a command of `windlass admin` does. `ask` reads what was typed, before the database is opened; the example
 * is what is typed next by whoever typed something wrong.
 */
export function doesAdmin<A>(
  command: Command,
  example: string,
  ask: (flags: AdminFlags, positional: string[]) => A,
  work: (call: AdminCall, asked: A) => Promise<void>,
): void {
  command.addHelpText('after', `\nExample: ${example}`)
  does(command, async (session, positional) => {
    const flags = command.optsWithGlobals<AdminFlags>()
    const asked = ask(flags, positional)
    const database = { url: flags.databaseUrl, example }
    await withAdmin(database, (admin) => work({ admin, session }, asked))
  })
}

/**
 * WINDLASS_ORG counts as elsewhere; an org of the local instance does not: here the wrong one would be found out late.
 */
export function orgOf(flags: AdminFlags, example: string): string {
  return needed('--org', flags.org ?? (process.env['WINDLASS_ORG'] || undefined), example)
}

export function needed(flag: string, value: string | undefined, example: string): string {
  if (value !== undefined && value !== '') return value
  throw new Failure(`\`${flag}\` is missing.`, example)
}

export function roleOf(flags: AdminFlags, example: string): Role {
  const given = needed('--role', flags.role, example)
  const role = ROLES.find((one) => one === given)
  if (role) return role
  throw new Failure(`\`${given}\` is no role${didYouMean(given, ROLES) || '.'} Roles: ${ROLES.join(', ')}.`, example)
}

export function scopesOf(flags: AdminFlags, example: string): Scope[] {
  return (flags.scope ?? []).map((given) => {
    const scope = SCOPES.find((one) => one === given)
    if (scope) return scope
    throw new Failure(
      `\`${given}\` is no scope${didYouMean(given, SCOPES) || '.'} Scopes: ${SCOPES.join(', ')}.`,
      example,
    )
  })
}

/** A length of time up to so many days. */
export function lengthOf(flag: string, given: string, { days, example }: { days: number; example: string }): number {
  const ms = durationMs(given)
  if (ms !== undefined && ms >= 1000 && ms <= days * 86_400_000) return ms
  throw new Failure(
    `\`${flag}\` takes a length of time from 1s to ${days}d, such as 12h or 20d; not \`${given}\`.`,
    example,
  )
}

/** `--scope a,b --scope c` */
export function listed(text: string, before?: string[]): string[] {
  const given = text.split(',').map((one) => one.trim())
  return [...(before ?? []), ...given.filter((one) => one !== '')]
}
