/** What a signal to `npm start` asks for; undefined: nothing more than the one before it. */
export type Urgency = 'stop' | 'hurry' | 'leave' | undefined

/** `timeout -s INT` and npm in a terminal send one signal twice, to the process and to its group. */
const SAME_WITHIN_MS = 500

/** Answers what the signals mean that come one after the other. */
export function createUrgencies(): (signal: NodeJS.Signals, atMs: number) => Urgency {
  let last: { signal: NodeJS.Signals; atMs: number } | undefined
  const steps: Urgency[] = ['stop', 'hurry', 'leave']
  return (signal, atMs) => {
    const isSame = last?.signal === signal && atMs - last.atMs < SAME_WITHIN_MS
    last = { signal, atMs }
    if (isSame) return undefined
    return steps.length > 1 ? steps.shift() : steps[0]
  }
}
