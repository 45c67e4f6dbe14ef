import { note } from './terminal.ts'

// They are not repeated on a screen.
const SECRET_FLAGS = ['--api-key', '--session']

/** Where the rest of a list is: what was typed, with its filters, from the cursor on. */
export function tellNextPage(cursor: string | null, args: readonly string[] = process.argv.slice(2)): void {
  if (cursor === null) return
  const left = args.filter((arg, index) => !isLeftOut(arg, args[index - 1]))
  note(`More: windlass ${[...left, '--cursor', cursor].map(quoted).join(' ')}`)
}

function isLeftOut(arg: string, before: string | undefined): boolean {
  const flags = ['--cursor', ...SECRET_FLAGS]
  return flags.some((flag) => arg === flag || arg.startsWith(`${flag}=`) || before === flag)
}

/** As a shell takes it. */
export function quoted(arg: string): string {
  return /^[\w@%+=:,./-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", String.raw`'\''`)}'`
}
