import { join } from 'node:path'
import type { StartSettings } from './settings.ts'

/** Our environment, and of our own settings those that are meant for the part: an agent never sees the database. */
export function partEnvironment(settings: StartSettings, isMeant: (name: string) => boolean): NodeJS.ProcessEnv {
  const own = Object.entries(settings.env).filter(
    ([name]) => !name.startsWith('WINDLASS_') || name.startsWith('WINDLASS_TEST_') || isMeant(name),
  )
  return {
    NODE_COMPILE_CACHE: join(settings.home, 'cache', 'compile'),
    ...Object.fromEntries(own),
    WINDLASS_HOME: settings.home,
  }
}

/** Nothing where the log goes to our own stderr. */
export function logFile(settings: StartSettings, name: string): string | undefined {
  return settings.json ? undefined : join(settings.home, 'logs', `${name}.log`)
}
