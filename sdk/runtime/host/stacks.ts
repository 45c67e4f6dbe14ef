import { readFileSync } from 'node:fs'
import { SourceMap, type SourceMapPayload } from 'node:module'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

type Mapped = { source: string; line: number; column: number }
type MapPosition = (line: number, column: number) => Mapped | null

/**
 * Makes stacks speak of the program's own files instead of its bundle. Node's `--enable-source-maps` costs a
 * millisecond at every start; this costs nothing until somebody looks at a stack. Our own frames are left out. Returns
 * what tells where the program makes the call that is being made: `index.ts:12:9`.
 */
export function mapStacks(bundleFile: string, runtimeFolder: string): () => string {
  const ours = [runtimeFolder, pathToFileURL(runtimeFolder).href, 'node:internal/modules/']
  const isOurs = (site: NodeJS.CallSite) => ours.some((start) => site.getFileName()?.startsWith(start))
  let positions: MapPosition | undefined
  Error.prepareStackTrace = (error, sites) => {
    positions ??= readMap(`${bundleFile}.map`)
    const lines = sites.filter((site) => !isOurs(site)).map((site) => lineOf(site, bundleFile, positions))
    return [headOf(error), ...lines].join('\n    at ')
  }
  // A loop makes the same call thousands of times.
  const known = new Map<string, string>()
  return () => {
    const site = sitesHere().find((site) => !isOurs(site))
    const file = site?.getFileName()
    const line = site?.getLineNumber()
    const column = site?.getColumnNumber()
    if (!file || !line || !column) return ''
    const key = `${file}:${line}:${column}`
    const before = known.get(key)
    if (before !== undefined) return before
    positions ??= readMap(`${bundleFile}.map`)
    const found = isBundle(file, bundleFile) ? positions(line, column) : null
    const text = found ? `${found.source}:${found.line}:${found.column}` : `${path.basename(file)}:${line}:${column}`
    known.set(key, text)
    return text
  }
}

// Ours stand above that of the program.
const FRAMES = 12

/** The stack of whoever has called `callee`. */
export function sitesHere(frames = FRAMES, callee: (...args: never[]) => unknown = sitesHere): NodeJS.CallSite[] {
  const limit = Error.stackTraceLimit
  const prepare = Reflect.get(Error, 'prepareStackTrace') as unknown
  Error.prepareStackTrace = (_error, sites) => sites
  Error.stackTraceLimit = frames
  const here: { stack?: unknown } = {}
  Error.captureStackTrace(here, callee)
  const sites = here.stack
  Reflect.set(Error, 'prepareStackTrace', prepare)
  Error.stackTraceLimit = limit
  return Array.isArray(sites) ? (sites as NodeJS.CallSite[]) : []
}

function headOf(error: Error): string {
  try {
    return String(error)
  } catch {
    // A program's own toString may throw; a stack without a head is still a stack.
    return 'Error'
  }
}

function lineOf(site: NodeJS.CallSite, bundleFile: string, positions: MapPosition | undefined): string {
  const printable: { toString: () => string } = site
  const text = printable.toString()
  const file = site.getFileName()
  const line = site.getLineNumber()
  const column = site.getColumnNumber()
  if (!file || !line || !column || !isBundle(file, bundleFile)) return text
  const found = positions?.(line, column)
  return found ? text.replace(`${file}:${line}:${column}`, `${found.source}:${found.line}:${found.column}`) : text
}

function isBundle(file: string, bundleFile: string): boolean {
  return file === bundleFile || (file.startsWith('file:') && fileURLToPath(file) === bundleFile)
}

function readMap(file: string): MapPosition {
  try {
    const map = new SourceMap(JSON.parse(readFileSync(file, 'utf8')) as SourceMapPayload)
    return (line, column) => {
      const entry = map.findEntry(line - 1, column - 1)
      if (!('originalSource' in entry)) return null
      const source = entry.originalSource.replace(/^(\.\.?\/)+/, '')
      return { source, line: entry.originalLine + 1, column: entry.originalColumn + 1 }
    }
  } catch {
    // No map, or a broken one: positions in the bundle are better than nothing.
    return () => null
  }
}
