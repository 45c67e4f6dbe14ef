import { readdirSync, readFileSync } from 'node:fs'

const LOADED = 'NativeModule child_process'

/** Page faults of processes that were started here and have ended: there is none without. */
function faultsOfOthers(): number {
  const stat = readFileSync('/proc/self/stat', 'latin1')
  // Behind the name, which may hold anything; from there these are the fields 8 and 10.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return Number(fields[8]) + Number(fields[10])
}

/** What became this process by `exec` may have started some before. */
const before = orNothing(faultsOfOthers)

/**
 * Whether the program may have started processes. Many load `child_process`, as cloud SDKs do, and start none; and what
 * its worker threads load is not seen here.
 */
export function mayHaveStartedOthers(): boolean {
  return orNothing(() => faultsOfOthers() !== before || hasChildren()) ?? process.moduleLoadList.includes(LOADED)
}

/** Living ones, and those that nobody has waited for yet. */
const hasChildren = () =>
  readdirSync('/proc/self/task').some((id) => readFileSync(`/proc/self/task/${id}/children`, 'latin1') !== '')

/** Not every system tells. */
function orNothing<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
