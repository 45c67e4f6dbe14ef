import type { StartMessage } from '@windlass/shared/wire/program.ts'

/** What a process looked like before a program touched it, to be put back between two runs and compared with. */
export interface Surroundings {
  enter(start: StartMessage): void
  restore(): void
  leftovers(): string[]
}

export function rememberSurroundings(): Surroundings {
  const folder = process.cwd()
  const environment = { ...process.env }
  const resources = count(process.getActiveResourcesInfo())
  const listeners = countListeners()
  return {
    enter: (start) => {
      process.chdir(start.workspace)
      Object.assign(process.env, start.variables, { HOME: start.workspace, TMPDIR: `${start.workspace}/tmp` })
    },
    restore: () => {
      process.chdir(folder)
      for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name]
      Object.assign(process.env, environment)
      process.exitCode = undefined
    },
    leftovers: () => [
      ...more(resources, count(process.getActiveResourcesInfo())),
      ...more(listeners, countListeners()).map((name) => `listener for ${name}`),
    ],
  }
}

type Counts = Map<string, number>

function count(names: string[]): Counts {
  const counts: Counts = new Map()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

function countListeners(): Counts {
  return new Map(process.eventNames().map((name) => [String(name), process.listenerCount(name)]))
}

/** Only what was added counts: a module that unhooks itself leaves nothing behind. */
function more(before: Counts, after: Counts): string[] {
  return [...after].filter(([name, number]) => number > (before.get(name) ?? 0)).map(([name]) => name)
}
