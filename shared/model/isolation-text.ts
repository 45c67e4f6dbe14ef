import type { EffectiveIsolation } from './runner.ts'

/** `bubblewrap, own user, cgroup, no network`: what was in force for a run, for eyes. */
export function isolationText({ level, user, cgroup, network }: EffectiveIsolation): string {
  return [
    level,
    user === 'own' ? 'own user' : "the agent's user",
    ...(cgroup ? ['cgroup'] : []),
    ...(network === 'none' ? ['no network'] : []),
  ].join(', ')
}
