/**
 * Where a run is counted, as `runs.concurrency_group` has it: `wf_…/customer.id/Xy0…=1 wf_…=10`. A run enters the
 * groups in this order. It follows from their names alone, so that no two runs wait for each other in a circle.
 */
export interface Group {
  key: string
  /** Of the version that the run executes; missing where only the key is at hand. */
  limit: number | undefined
}

export function readGroups(text: string): Group[] {
  return text.split(' ').map((part) => {
    const [key = '', limit] = part.split('=')
    return { key, limit: limit === undefined ? undefined : Number(limit) }
  })
}

export function writeGroups(groups: readonly (Group & { limit: number })[]): string {
  return groups
    .toSorted((a, b) => compareStages(stageOf(a.key), stageOf(b.key)))
    .map(({ key, limit }) => `${key}=${limit}`)
    .join(' ')
}

/** Whose lock guards a group. */
export const workflowOf = (key: string) => key.split('/', 1)[0]!

/** The field of the input that a group is made by; empty for all runs of a workflow. */
export const stageOf = (key: string) => key.split('/')[1] ?? ''

/**
 * Groups by a field come first, in the order of its names; that of all runs comes last. A run that waits keeps the
 * groups that it has entered, and this one is what most others wait for.
 */
export function compareStages(a: string, b: string): number {
  if (a === b) return 0
  if (a === '' || b === '') return a === '' ? 1 : -1
  return a < b ? -1 : 1
}
