import type { BuildFailure, Message } from 'esbuild'
import { Failure } from '../failure.ts'

const SHOWN = 5

/** What esbuild refused, told with file and line; anything else that was thrown stays what it is. */
export function buildFailure(error: unknown): unknown {
  if (!isBuildFailure(error)) return error
  const own = error.errors.map(({ detail }) => detail as unknown).find((detail) => detail instanceof Failure)
  if (own) return own
  const lines = error.errors.slice(0, SHOWN).map(messageText)
  const more = error.errors.length > SHOWN ? [`and ${error.errors.length - SHOWN} more`] : []
  return new Failure([...lines, ...more].join('\n'), nextStep(error.errors[0]))
}

function messageText({ text, location }: Message): string {
  return location ? `${location.file}:${location.line}:${location.column + 1}: ${text}` : text
}

function nextStep(first: Message | undefined): string {
  const name = /^Could not resolve "([^"./][^"]*)"/.exec(first?.text ?? '')?.[1]
  if (name === undefined) return 'mend the line that is named, then windlass deploy again'
  return `npm install ${packageName(name)} in the workflow's folder or above it, then windlass deploy again`
}

/** `@scope/pkg/sub` → `@scope/pkg`. */
export function packageName(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}

function isBuildFailure(error: unknown): error is BuildFailure {
  return error instanceof Error && 'errors' in error && Array.isArray(error.errors)
}
