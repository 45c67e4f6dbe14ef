import { randomUUID } from 'node:crypto'
import type { ListedTool } from './table.ts'

/**
 * Stands in an answer of the library for the list of tools. The list has some 170 KB and is always the same: to have it
 * printed, decoded and searched anew for each request held everybody else up for 6 ms. Nobody outside knows the name.
 */
export const STAND_IN: { name: string; inputSchema: { type: 'object' } }[] = [
  { name: randomUUID(), inputSchema: { type: 'object' } },
]
const PRINTED = JSON.stringify(STAND_IN)

/** The answer with the list, as JSON text, in place of what stands for it. */
export const withTools = (text: string, list: string): string => text.replaceAll(PRINTED, () => list)

/** One such character makes a text twice as large in memory, and ten times as slow to encode. */
const NOT_ASCII = /[^\0-\x7f]/g
const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Kept whole: some 3 MB. There may be hundreds of lists, as many as keys have lists of scopes. */
const MOST_LISTS = 16

/** Prints each tool once, and what is asked for often as a whole. */
export function createToolPrinter(): (tools: readonly ListedTool[]) => string {
  const texts = new Map<ListedTool, string>()
  const lists = new Map<readonly ListedTool[], string>()
  const print = (tool: ListedTool) => JSON.stringify(tool).replaceAll(NOT_ASCII, escaped)
  const join = (tools: readonly ListedTool[]) => `[${tools.map((tool) => printedOnce(texts, tool, print)).join(',')}]`
  return (tools) => {
    if (lists.size >= MOST_LISTS && !lists.has(tools)) lists.clear()
    return printedOnce(lists, tools, join)
  }
}

function printedOnce<K>(texts: Map<K, string>, key: K, print: (key: K) => string): string {
  const known = texts.get(key)
  if (known !== undefined) return known
  const text = print(key)
  texts.set(key, text)
  return text
}
