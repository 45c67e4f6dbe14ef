import { readFileSync } from 'node:fs'
import { SourceMap, type SourceMapPayload } from 'node:module'
import { fileURLToPath } from 'node:url'

type Mapped = { source: string; line: number; column: number }
type MapPosition = (line: number, column: number) => Mapped | null

/**
 * Makes stacks speak of the program's own files instead of its bundle. Node's `--enable-source-maps` costs a millisecond at
 * every start; this costs nothing until somebody looks at a stack. Our own frames are left out.
 */
export function mapStacks(bundleFile: string, runtimeFolder: string): void {
  let positions: MapPosition | undefined
  Error.prepareStackTrace = (error, sites) => {
    positions ??= readMap(`${bundleFile}.map`)
    const lines = sites
      .filter((site) => !isOurs(site, runtimeFolder))
      .map((site) => lineOf(site, bundleFile, positions))
    return [headOf(error), ...lines].join('\n    at ')
  }
}

function headOf(error: Error): string {
  try {
    return String(error)
  } catch {
    // A program's own toString may throw; a stack without a head is still a stack.
    return 'Error'
  }
}

function isOurs(site: NodeJS.CallSite, runtimeFolder: string): boolean {
  const file = site.getFileName()
  return (
    file !== null && file !== undefined && (file.startsWith(runtimeFolder) || file.startsWith('node:internal/modules/'))
  )
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
