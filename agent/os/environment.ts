/** Carried by a program's process and all its descendants, so that those who leave the process group are still found. */
export const MARKER = 'WINDLASS_PROCESS'

const PASSED_ON = ['PATH', 'LANG', 'LC_ALL', 'TZ'] as const
const FALLBACK_PATH = '/usr/local/bin:/usr/bin:/bin'

/** What programs get of their host's environment: how to find commands, and how to write dates and texts. Nothing else. */
export function programEnvironment(host: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const env: Record<string, string> = { PATH: FALLBACK_PATH }
  for (const name of PASSED_ON) {
    const value = host[name]
    if (value) env[name] = value
  }
  return env
}
