import type { RunId } from '@windlass/shared/ids.ts'

export type KeyKind = 'id' | 'signature' | 'content'

/** A run that is about to be made, and what a repetition of its delivery has again, in the order of their weight. */
export interface Claimant {
  runId: RunId
  keys: readonly { kind: KeyKind; name: string }[]
  /** It is made whoever holds its keys, and has those that are free. */
  isReplay?: boolean
}

export interface Decision {
  /** By a run that must not be made, the one that was made before, or is made with it. */
  holders: Map<RunId, RunId>
  /** By the run of a replay, the run that the same delivery has started before. */
  earlier: Map<RunId, RunId>
  /** The run that is to have each key that none had before. A key without one is free again. */
  keeps: Map<string, RunId>
}

/**
 * One after the other, as only a run that is made holds a key: one that is known by another of its keys would take the
 * id of a delivery that comes with it, and neither would start anything. `held`: who has each key by now, the first of
 * these runs among them.
 *
 * A sender that tries again signs anew: its new signature is known as well, or a copy of it under another id would
 * start a run. Only where the body is the same: else an id that is known would be enough to have another delivery,
 * which has been read on its way, taken for a repetition.
 *
 * A replay is asked for by somebody, so nothing keeps it from a run. Its sender may have been refused, and tries again:
 * that is a repetition of the replay.
 */
export function decideHolders(claimants: readonly Claimant[], held: ReadonlyMap<string, RunId>): Decision {
  const own = new Set(claimants.map(({ runId }) => runId))
  const holders = new Map<RunId, RunId>()
  const earlier = new Map<RunId, RunId>()
  const keeps = new Map<string, RunId>()
  const holderOf = (name: string) => {
    const before = held.get(name)
    return before === undefined || own.has(before) ? keeps.get(name) : before
  }
  for (const { runId, keys, isReplay = false } of claimants) {
    const holder = keys.map(({ name }) => holderOf(name)).find((one) => one !== undefined)
    if (holder !== undefined) (isReplay ? earlier : holders).set(runId, holder)
    const isSame = keys.some(({ kind, name }) => kind === 'content' && holderOf(name) === holder)
    for (const { kind, name } of keys)
      if (holder === undefined || (isReplay && holderOf(name) === undefined)) keeps.set(name, runId)
      else if (isSame && kind === 'signature' && holderOf(name) === undefined) keeps.set(name, holder)
  }
  return { holders, earlier, keeps }
}
