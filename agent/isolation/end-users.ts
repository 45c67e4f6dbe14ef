import type { Exit } from '../os/process.ts'
import { runTool } from '../os/run-tool.ts'
import type { UidRange } from './plan.ts'
import { toolPath } from './tools.ts'

/** Says that all was killed. Who is to be killed may stop or kill this first, but not speak in its place. */
export const DONE = 42

export const isDone = (exit: Exit) => 'exitCode' in exit && exit.exitCode === DONE

/** For a shell that is the user already. */
export const KILL_ALL = `kill -9 -1; exit ${DONE}`

/**
 * Becomes one user after the other, and kills all that is its own in the next call. There is nothing executed between
 * the two, as processes that kill whoever is to end them would be faster. It has the power to become anybody, but not
 * to kill what is another user's, or it would end the machine: it makes sure of that. Programs of a user cannot trace
 * it: it has another group, more powers than they, and hidden memory. SIGUSR1 would open Node's debugger to them.
 */
const BECOME_AND_KILL = `
const [group, ...edges] = process.argv.slice(1).map(Number)
if (!/^CapEff:\\t0*c0$/m.test(require('node:fs').readFileSync('/proc/self/status', 'utf8'))) process.exit(1)
process.on('SIGUSR1', () => {})
const unless = (code, act) => { try { act(); return true } catch (error) { if (error.code !== code) throw error } }
const kill = () => process.kill(-1, 'SIGKILL')
process.setgroups([])
process.setgid(group)
for (let at = 0; at < edges.length; at += 2)
  for (let uid = edges[at]; uid <= edges[at + 1]; uid++)
    if (uid > 0 && unless('EINVAL', () => process.setuid(uid))) unless('ESRCH', kill)
process.exit(${DONE})
`

/** It keeps the power when it becomes a user. */
const POWERS = [
  '--securebits=+no_setuid_fixup',
  '--bounding-set=-all,+setuid,+setgid',
  '--inh-caps=-all',
  '--no-new-privs',
  '--',
]

/** What kills all that runs as a user of these ranges. It takes a third of a second of processor time for 999. */
export function killerOf(ranges: readonly UidRange[]): [file: string, ...args: string[]] {
  const edges = ranges.flatMap(({ first, last }) => [first, last])
  const numbers = [process.getegid?.() ?? 0, ...edges].map(String)
  return [toolPath('setpriv') ?? 'setpriv', ...POWERS, process.execPath, '-e', BECOME_AND_KILL, ...numbers]
}

/**
 * Somebody may kill or stop it first; all that came before is ended even then, so that the next try comes further.
 * `impossible`: the system gives nobody such a power, as gVisor does not. No program can have it say so.
 */
export async function killUsers(
  ranges: readonly UidRange[],
  { tries, eachMs }: { tries: number; eachMs: number },
): Promise<'done' | 'prevented' | 'impossible'> {
  const [file, ...args] = killerOf(ranges)
  for (let left = tries; left > 0; left--) {
    const exit = await runTool(file, args, eachMs)
    if (isDone(exit)) return 'done'
    if ('exitCode' in exit && exit.exitCode !== null) return 'impossible'
  }
  return 'prevented'
}
