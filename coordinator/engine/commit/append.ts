import type { RunId } from '@windlass/shared/ids.ts'
import type { Entry } from '@windlass/shared/wire/agent.ts'
import type { Bell } from '../../events/bell.ts'
import type { Db } from '../../db/client.ts'
import type { Tails } from '../../events/live.ts'
import type { Config } from '../../config.ts'
import { charsOf } from '../rules/journal.ts'
import { MOST_ENTRIES } from '../rules/parse-op.ts'
import type { Applied, ReadBatch, JournalCommands } from '../rules/batch.ts'
import * as store from '../store/append.ts'
import { takeEvent } from '../rules/take-event.ts'

/**
 * The short way for what is sent most: lines of logs, and results of steps, of runs that do nothing else meanwhile.
 * Returns undefined when any of these batches wants more or was not taken like this. Nothing of such a batch has been
 * written, and the caller looks closer.
 */
export async function appendPlain(
  deps: { db: Db; tails: Tails; bell: Bell; config: Config },
  batches: readonly ReadBatch[],
): Promise<Applied[] | undefined> {
  if (!batches.every((batch) => batch.entries.every((entry) => isPlain(entry, batch.commands)))) return undefined
  if (new Set(batches.map((batch) => batch.run)).size < batches.length) return undefined
  const additions = batches.map((batch) => additionOf(batch, deps.config))
  // In the order of their ids, like all who lock several runs.
  const done = await store.append(
    deps.db,
    additions.toSorted((a, b) => (a.runId < b.runId ? -1 : 1)),
  )
  for (const { runId, events } of additions) {
    if (!done.has(runId) || events.length === 0) continue
    deps.tails.ring(runId)
    deps.bell.ring('run', runId)
  }
  if (done.size < batches.length) return undefined
  return additions.map(({ last }) => ({ kind: 'ack', seq: last }))
}

function isPlain(entry: Entry, commands: JournalCommands): boolean {
  if (entry[0] === 'e') return true
  const op = entry[0] === 'j' ? commands.get(entry)?.op : undefined
  return op?.op === 'close' && op.entry.n <= MOST_ENTRIES
}

function additionOf(batch: ReadBatch, config: Config): store.Addition {
  const scratch = { id: batch.run as RunId, orgId: batch.orgId, cursor: 0, events: [] }
  const entries: store.Addition['entries'] = []
  const numbers = new Set<number>()
  let chars = 0
  for (const entry of batch.entries) {
    if (entry[0] === 'e') takeEvent(scratch, entry, config)
    const op = batch.commands.get(entry)?.op
    if (op?.op !== 'close') continue
    const { entry: identity, state, result } = op
    // Whatever is said counts, as nobody knows here what the journal has; the first result of an entry is written.
    chars += charsOf({ ...identity, result })
    if (numbers.has(identity.n)) continue
    numbers.add(identity.n)
    entries.push({ ...identity, state, result })
  }
  const { runnerId, epoch, first } = batch
  return {
    runId: scratch.id,
    runnerId,
    epoch,
    first,
    last: first + batch.entries.length - 1,
    events: scratch.events,
    entries,
    chars,
  }
}
