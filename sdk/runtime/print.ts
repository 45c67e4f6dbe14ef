/* oxlint-disable no-console -- this is what happens without a runtime: somebody tries a program by hand. */
import type { LogLevel } from '@windlass/shared/wire/program.ts'

/** To the console, with whatever comes along. */
export function print(level: LogLevel | undefined, text: unknown, beside: unknown): void {
  const to = level === 'warn' ? console.warn : level === 'error' ? console.error : console.log
  to(text, ...(beside === undefined ? [] : [beside]))
}
