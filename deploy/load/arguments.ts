import { parseArgs } from 'node:util'

export interface BenchOptions {
  json: boolean
  only: readonly string[]
  repeats: number
  out?: string
  compare?: string
}

const REPEATS = 5
/** Fewest repeats that say something about noise. */
const QUICK_REPEATS = 3
/** Groups that take minutes each. */
const LONG = new Set(['idle', 'asleep', 'schedules', 'fleet', 'api'])

export const usageOf = (groups: readonly string[]) => `usage: npm run bench -- [options]
  --only ${groups.join(',')}
  --repeats ${REPEATS}      of which each row is the median
  --quick          ${QUICK_REPEATS} repeats, without ${[...LONG].join(', ')}
  --json           rows as JSON lines
  --out FILE       rows as JSON lines into a file, besides
  --compare FILE   beside the rows of an earlier run (what --json or --out wrote)
A goal that is missed changes no exit code. It is 1 when a row could not be measured.`

/** Returns undefined for arguments that it does not understand. */
export function readArguments(
  args: readonly string[],
  groups: { all: readonly string[]; usual: readonly string[] },
): BenchOptions | undefined {
  const values = parsed(args)
  if (!values) return undefined
  const { quick = false, json = false, out, compare } = values
  const usual = groups.usual.filter((name) => !quick || !LONG.has(name))
  const only = values.only?.split(',') ?? usual
  const repeats = Number(values.repeats ?? (quick ? QUICK_REPEATS : REPEATS))
  const isKnown = only.every((name) => groups.all.includes(name))
  if (!isKnown || !Number.isInteger(repeats) || repeats < 1) return undefined
  return { json, only, repeats, ...(out !== undefined && { out }), ...(compare !== undefined && { compare }) }
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        json: { type: 'boolean' },
        quick: { type: 'boolean' },
        only: { type: 'string' },
        repeats: { type: 'string' },
        out: { type: 'string' },
        compare: { type: 'string' },
      },
    }).values
  } catch {
    return undefined
  }
}
