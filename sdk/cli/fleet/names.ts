import type { Runner } from '@windlass/shared/model/runner.ts'
import type { Client } from '../../client/index.ts'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'

const PAGES = 50
const PAGE = 100

/**
 * People know a runner by its name; the operations want the id. Machines may share a name: then only an id says which
 * is meant.
 */
export async function runnerId(client: Client, given: string): Promise<string> {
  if (given.startsWith('rnr_')) return given
  const runners = everyPage<Runner>(async (cursor) => {
    const { runners: found, nextCursor } = await client.runners.list({ limit: PAGE, cursor })
    return { found, nextCursor }
  })
  const named: Runner[] = []
  for await (const runner of runners) if (runner.name === given) named.push(runner)
  const [first, ...others] = named
  if (!first) throw new Failure(`There is no runner \`${given}\`.`, 'windlass runners list', EXIT.refused, 'NOT_FOUND')
  if (others.length > 0) throw ambiguous(given, named)
  return first.id
}

function ambiguous(given: string, named: Runner[]): Failure {
  const each = named.map(({ id, pool, status }) => `  ${id}  in pool ${pool.name}, ${status}`)
  return new Failure(
    `${named.length} runners are called \`${given}\`:\n${each.join('\n')}`,
    'the same command again with the id of the one that is meant',
    EXIT.usage,
    'AMBIGUOUS',
  )
}

interface Page<T> {
  found: T[]
  nextCursor: string | null
}

async function* everyPage<T>(read: (cursor: string | undefined) => Promise<Page<T>>): AsyncGenerator<T> {
  let cursor: string | undefined
  for (let page = 0; page < PAGES; page++) {
    const { found, nextCursor } = await read(cursor)
    yield* found
    if (nextCursor === null) return
    cursor = nextCursor
  }
}
