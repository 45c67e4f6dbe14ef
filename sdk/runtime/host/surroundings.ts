import type { StartMessage } from '@windlass/shared/wire/program.ts'
import { watchUnrefed } from './unrefed.ts'

/** What a process looked like before a program touched it, to be put back between two runs and compared with. */
export interface Surroundings {
  enter(start: StartMessage): void
  restore(): void
  leftovers(): string[]
}

// A report of them all has to fit into a frame, whatever a program makes of their names.
const MOST_NAMED = 20
const NAME_CHARACTERS = 100

export function rememberSurroundings(): Surroundings {
  const restore = rememberSettings()
  const resources = count(process.getActiveResourcesInfo())
  const listeners = listenersNow()
  let unrefed: (() => string[]) | undefined
  return {
    enter: (start) => {
      if (start.stays) unrefed ??= watchUnrefed()
      process.chdir(start.workspace)
      Object.assign(process.env, start.variables, { HOME: start.workspace, TMPDIR: `${start.workspace}/tmp` })
    },
    restore,
    leftovers: () =>
      [
        ...more(resources, count(process.getActiveResourcesInfo())),
        ...(unrefed?.() ?? []),
        ...changed(listeners, listenersNow()).map((name) => `listener for ${name}`),
      ]
        .slice(0, MOST_NAMED)
        .map((name) => name.slice(0, NAME_CHARACTERS)),
  }
}

/** Returns what puts them back. */
function rememberSettings(): () => void {
  const folder = process.cwd()
  const environment = { ...process.env }
  const { title } = process
  const { stackTraceLimit } = Error
  const umask = process.umask(0)
  process.umask(umask)
  return () => {
    process.chdir(folder)
    for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name]
    Object.assign(process.env, environment)
    process.exitCode = undefined
    process.umask(umask)
    if (process.title !== title) process.title = title
    Error.stackTraceLimit = stackTraceLimit
  }
}

type Counts = Map<string, number>

function count(names: string[]): Counts {
  const counts: Counts = new Map()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

/** Only what was added counts: what has ended leaves nothing behind. */
function more(before: Counts, after: Counts): string[] {
  return [...after].filter(([name, number]) => number > (before.get(name) ?? 0)).map(([name]) => name)
}

type Listeners = Map<string | symbol, readonly unknown[]>

function listenersNow(): Listeners {
  return new Map(process.eventNames().map((name) => [name, process.rawListeners(name as NodeJS.Signals)]))
}

/** One in the place of another counts as well, and so does one of ours that is gone. */
function changed(before: Listeners, after: Listeners): string[] {
  const isSame = (name: string | symbol) => {
    const [one = [], other = []] = [before.get(name), after.get(name)]
    return one.length === other.length && one.every((listener, index) => listener === other[index])
  }
  return [...new Set([...before.keys(), ...after.keys()])].filter((name) => !isSame(name)).map(String)
}
