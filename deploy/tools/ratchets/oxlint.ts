import { readFileSync } from 'node:fs'
import path from 'node:path'
import { NOT_OURS } from '../import-rules.ts'
import type { Offender } from './list.ts'
import { runTool } from './run-tool.ts'

const CONFIG = path.join(import.meta.dirname, 'oxlint.jsonc')

interface Diagnostic {
  readonly code: string
  readonly message: string
  readonly note?: string
  readonly filename: string
  readonly labels: readonly { readonly span: { readonly line: number; readonly column: number } }[]
}

export interface Linted {
  readonly cycles: readonly Offender[]
  readonly functions: readonly Offender[]
}

/** Imports that lead back to their file, and functions of more than 80 lines. */
export async function lint(root: string): Promise<Linted> {
  const args = ['--config', CONFIG, '--disable-nested-config', '--format', 'json']
  const { diagnostics } = (await runTool(root, 'oxlint/bin/oxlint', args)) as { diagnostics: Diagnostic[] }
  const ours = diagnostics.filter(({ filename }) => !NOT_OURS.test(filename))
  const of = (rule: string) => ours.filter(({ code }) => code.includes(`(${rule})`))
  return {
    cycles: onePerImportedFile(of('no-cycle').map(cycleOf)),
    functions: numbered(of('max-lines-per-function').map((diagnostic) => functionOf(root, diagnostic))),
  }
}

/** The note draws the way: each file on it in brackets, first the imported one, last the one that imports it. */
function cycleOf({ filename, note = '', message }: Diagnostic): Offender {
  const [imported, ...way] = [...note.matchAll(/\(([^()]+)\)$/gm)].map(([, file]) => file!)
  if (imported === undefined) throw new Error(`what oxlint says of ${filename} is not understood: ${message} ${note}`)
  // The way may come by a file twice.
  const back = way.slice(way.lastIndexOf(imported) + 1, -1).join(', ')
  return { file: filename, what: imported, ...(back && { detail: `by ${back}` }) }
}

/** A file that imports another twice, once for its types, has one offence. */
function onePerImportedFile(found: readonly Offender[]): Offender[] {
  return [...new Map(found.map((offender) => [`${offender.file} ${offender.what}`, offender])).values()]
}

function functionOf(root: string, { filename, message, labels }: Diagnostic) {
  const [, name, size] = /^The .*?(?:`(.+)` )?has too many lines \((\d+)\)/.exec(message) ?? []
  if (size === undefined) throw new Error(`what oxlint says of ${filename} is not understood: ${message}`)
  return { file: filename, size: Number(size), what: name ?? nameBefore(root, filename, labels[0]!.span) }
}

/** For a function without a name: what it is assigned to, or the call that it is given to, `test('a run ends')`. */
function nameBefore(root: string, file: string, { line, column }: { line: number; column: number }): string {
  const text = readFileSync(path.join(root, file), 'utf8').split('\n')[line - 1] ?? ''
  const before = text.slice(0, column - 1).trim()
  const assigned = /([\w$]+)(?::[^=]*)?\s*[=:]$/.exec(before)?.[1]
  const call = /[\w$.]+\((?:(['"`]).*?\1)?/.exec(before)?.[0]
  return assigned ?? (call ? `${call})` : 'a function without a name')
}

/** Functions of one name in one file are told apart by a number: `handler`, `handler 2`. */
function numbered(found: readonly (Offender & { what: string })[]): Offender[] {
  const times = new Map<string, number>()
  return found.map((offender) => {
    const key = `${offender.file} ${offender.what}`
    const time = (times.get(key) ?? 0) + 1
    times.set(key, time)
    return time === 1 ? offender : { ...offender, what: `${offender.what} ${time}` }
  })
}
