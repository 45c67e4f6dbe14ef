import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Db } from '@windlass/coordinator/db/client.ts'
import { processesMarked } from '../../tools/leftovers.ts'

/** A word that nothing else contains, to be planted where it must not come out again. */
export function aCanary(): string {
  return `canary${randomBytes(9).toString('hex')}`
}

/** Whatever of them is in a text: as it is, or as programs encode what it stands in. */
export function seenIn(text: string, canaries: readonly string[]): string[] {
  return canaries.flatMap((canary) => tracesOf(canary).filter((trace) => text.includes(trace)))
}

function tracesOf(canary: string): string[] {
  const bytes = Buffer.from(canary)
  const hex = bytes.toString('hex')
  const spaced = hex.replace(/..(?=.)/g, '$& ')
  return [canary, canary.toUpperCase(), hex, hex.toUpperCase(), spaced, bytes.join(','), ...inBase64(bytes)]
}

/** Within something longer, three bytes of which are four characters: the ends depend on what stands beside. */
function inBase64(bytes: Buffer): string[] {
  return [0, 1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64')
    return text.slice(4, -4)
  })
}

/** Every file below a folder that holds one. */
export function filesWith(folder: string, canaries: readonly string[]): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => seenIn(contentOf(file), canaries).length > 0)
}

/** A file may go while others are read, and a process end. */
function contentOf(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return ''
    throw error
  }
}

/** Every table of a database, ours or another's in it, as text. */
export async function dumpOf(db: Db): Promise<Map<string, string>> {
  const tables = await db<{ schema: string; name: string }[]>`
    select relnamespace::regnamespace::text as schema, relname as name
    from pg_class
    where relkind in ('r', 'p') and not relispartition
      and relnamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)`
  const dumps = tables.map(async ({ schema, name }) => {
    const rows = await db<{ text: string }[]>`select t::text as text from ${db(schema)}.${db(name)} t`
    return [`${schema}.${name}`, rows.map((row) => row.text).join('\n')] as const
  })
  return new Map(await Promise.all(dumps))
}

/** How a process was started, as anybody on its host can read. */
export function startOf(mark: string): string[] {
  return processesMarked(mark).flatMap(({ pid }) =>
    ['cmdline', 'environ'].map((name) => `${pid} ${contentOf(`/proc/${pid}/${name}`)}`),
  )
}
