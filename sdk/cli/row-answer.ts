import type { Cli, Table } from '@windlass/shared/ops/cli.ts'
import { tellNextPage } from './next-page.ts'
import { countsNothing, fieldLines, filled, filledField } from './row-text.ts'
import { printFields, printTable } from './table.ts'
import { behindBar, cellTime, json, note, print } from './terminal.ts'

/** What a terminal shows of an answer, as its row says it; where that says nothing, the answer as JSON. */
export async function printAnswer(cli: Cli = {}, answer: unknown, args: object): Promise<void> {
  const from = { ...args, ...(answer as object | undefined) }
  if (cli.table) await printItems(cli.table, answer as object)
  if (cli.fields) printFields(fieldLines(cli.fields, from))
  for (const [text, line] of linesOf(cli.print, from)) print(isValue(text) ? line : behindBar(line, process.stdout))
  if (cli.json !== undefined) print(json((from as Record<string, unknown>)[cli.json]))
  if (!cli.table && !cli.fields && !cli.print && cli.json === undefined) print(wholeOf(answer))
  const notes = (cli.note ?? []).filter((text) => !countsNothing(text, from))
  for (const [, line] of linesOf(notes, from)) note(behindBar(line, process.stderr))
  tellNextPage((answer as { nextCursor?: string | null } | undefined)?.nextCursor ?? null)
}

function wholeOf(answer: unknown): string {
  return answer === undefined ? 'done' : JSON.stringify(answer, null, 2)
}

/** Each text that can be filled in, and what becomes of it. */
function linesOf(texts: readonly string[] = [], from: object): [text: string, line: string][] {
  return texts.flatMap((text) => {
    const line = filled(text, from)?.trimEnd()
    return line === undefined ? [] : [[text, line]]
  })
}

/** The answer is this field alone, such as the content of a file: it is printed as it is. */
const isValue = (text: string) => /^\{[\w.]+\}$/.test(text)

/** A line for each item of the list in the answer. */
async function printItems({ columns, none }: Table, answer: object): Promise<void> {
  const items = Object.values(answer).find((field): field is object[] => Array.isArray(field)) ?? []
  const texts = Object.values(columns)
  const rows = items.map((item) => texts.map((text) => filledField(text, item, cellTime) ?? '-'))
  await printTable(Object.keys(columns), rows)
  if (items.length === 0 && none !== undefined) note(none)
}
