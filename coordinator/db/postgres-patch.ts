/**
 * postgres.js 3.4.9 with its handling of lost connections put right, at load time and in memory only.
 *
 * As published, a server that dies in the middle of a transaction ends the whole process (its own `rollback` is written
 * to a socket that is gone, from a timer, where nobody can catch it), later statements of that transaction may run
 * *outside* of any transaction on the next connection, and some statements are never answered. Open upstream as
 * porsager/postgres #1066, #1133, #1154, #1208 and #1216. This goes when a release has them; a text that is not found
 * stops the start.
 *
 * Texts in arrays are escaped in one pass as well, as callers choose what they hold; and of a statement that is
 * composed by what they ask for, few texts stay prepared. A server that says nothing at all is given up: when its
 * machine vanishes, the system would wait 15 minutes for what is under way. And connections share look-ups of their
 * host.
 */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'
import type Postgres from 'postgres'
import { CORRECTIONS, type Correction } from './postgres-corrections.ts'
import { HOST_CORRECTIONS } from './postgres-host-corrections.ts'

const FOLDER = '/postgres/src/'
const ALL = [...CORRECTIONS, ...HOST_CORRECTIONS]

/**
 * Loads the corrected postgres.js. It must be the first to do so, which is why only client.ts may import the package.
 */
export async function loadPostgres(): Promise<typeof Postgres> {
  const corrected = new Set<string>()
  const hooks = registerHooks({
    load(url, context, next) {
      const file =
        url.startsWith('file:') && url.includes(FOLDER) ? url.slice(url.lastIndexOf(FOLDER) + FOLDER.length) : ''
      const corrections = ALL.filter((each) => each.file === file)
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
