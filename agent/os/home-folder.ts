import os from 'node:os'

/** Undefined where HOME is not set and no file of users knows who we are, as in some containers and services. */
export function homeFolder(): string | undefined {
  try {
    return os.homedir()
  } catch {
    return undefined
  }
}
