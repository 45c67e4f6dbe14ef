// Ratchets: rules that the project breaks in known places. Each has a list of them, which may only shrink: an offender
// that is not listed fails, and so does a line that is no longer true. `--shrink` takes such lines away.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { findUnused } from './ratchets/knip.ts'
import { tooLong } from './ratchets/lengths.ts'
import { formatList, judge, LISTS, parseList, rename, shrink } from './ratchets/list.ts'
import type { ListTexts, Offender } from './ratchets/list.ts'
import { vagueNames } from './ratchets/names.ts'
import { lint } from './ratchets/oxlint.ts'
import { PROJECT } from './source-files.ts'

type Name = 'cycles' | 'functions' | 'files' | 'lines' | 'names' | 'exports' | 'unused'
export type Found = Readonly<Record<Name, readonly Offender[]>>

const RATCHETS: readonly (ListTexts & { readonly name: Name })[] = [
  {
    name: 'cycles',
    title: 'Imports that lead back to the file they stand in, types included: file, imported file.',
    wrong: ({ what }) => `imports ${what}, which leads back to it`,
    remedy: 'move what both need into a file of its own, or have one name only what it needs: `{ db: Db }`',
  },
  {
    name: 'functions',
    title: 'Functions of more than 80 lines, comments included: file, lines, name.',
    wrong: ({ what, size }) => `has a function of more than 80 lines: ${what}, ${size}`,
    remedy: 'take its steps out, or write it as a table of handlers',
  },
  {
    name: 'files',
    title: 'Files of more than 300 lines: file, lines.',
    wrong: ({ size }) => `has more than 300 lines: ${size}`,
    remedy: 'give one of its acts a file of its own',
  },
  {
    name: 'lines',
    title: 'Lines of more than 120 columns, comments included: file, how many.',
    wrong: ({ size }) => `has lines of more than 120 columns: ${size}`,
    remedy: 'break them; `grep -nE "^.{121}"` shows them',
  },
  {
    name: 'names',
    title: 'Names with a word that has meant too many things: file, name; or the file alone, for its own.',
    wrong: ({ what }) => `${what ? `declares ${what}` : 'is itself named'}, with a word that says too little`,
    remedy: `name it by its kind: a location, a folder, a limit, a token; ${LISTS}/names.ts lists the words`,
  },
  {
    name: 'exports',
    title: 'Exports that no other file names: file, name.',
    wrong: ({ what }) => `exports ${what}, which no other file names`,
    remedy: 'take away the word `export`, or all of it',
  },
  {
    name: 'unused',
    title: 'Files that no entry reaches, and packages that no file imports: file, package.',
    wrong: ({ what }) => (what ? `declares ${what}, which no file imports` : 'is reached from no entry'),
    remedy: `take it away, or say in ${LISTS}/knip.jsonc what uses it`,
  },
]

export async function findOffenders(root: string): Promise<Found> {
  const [linted, unused] = await Promise.all([lint(root), findUnused(root)])
  return { ...linted, ...unused, ...tooLong(root), names: vagueNames(root) }
}

/** A sentence for everything by which the lists and the project differ. */
export function checkRatchets(root: string, found: Found): string[] {
  return RATCHETS.flatMap((texts) => judge(texts, readList(root, texts.name), found[texts.name]))
}

/** Takes away from the lists what is mended. A moved file keeps its lines under its new name; nothing else is added. */
export function shrinkLists(root: string, found: Found): void {
  const moved = movedFiles(root)
  for (const texts of RATCHETS) {
    const listed = rename(readList(root, texts.name), moved)
    writeList(root, texts, shrink(listed, found[texts.name]))
  }
}

const fileOf = (root: string, name: Name) => path.join(root, LISTS, `${name}.txt`)

/** A rule without a list has no offenders. */
function readList(root: string, name: Name): Offender[] {
  const file = fileOf(root, name)
  return existsSync(file) ? parseList(readFileSync(file, 'utf8')) : []
}

function writeList(root: string, texts: ListTexts & { name: Name }, offenders: readonly Offender[]): void {
  const file = fileOf(root, texts.name)
  if (offenders.length > 0) writeFileSync(file, formatList(texts, offenders))
  else rmSync(file, { force: true })
}

/** New names by old ones, of the moves that git sees between the last commit and what is staged: `git mv`. */
function movedFiles(root: string): Map<string, string> {
  const args = ['diff', '--cached', '--name-status', '--find-renames', '--diff-filter=R', '-z']
  const fields = execFileSync('git', args, { cwd: root, encoding: 'utf8', timeout: 20_000 }).split('\0')
  const moved = new Map<string, string>()
  for (let i = 0; i + 2 < fields.length; i += 3) moved.set(fields[i + 1]!, fields[i + 2]!)
  return moved
}

if (process.argv[1] === import.meta.filename) {
  const found = await findOffenders(PROJECT)
  if (process.argv.includes('--shrink')) shrinkLists(PROJECT, found)
  const sentences = checkRatchets(PROJECT, found)
  for (const sentence of sentences) console.log(sentence)
  process.exitCode = sentences.length > 0 ? 1 : 0
}
