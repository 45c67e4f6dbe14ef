import { DeployError } from './deploy-error.ts'

/** The namespace of every file in the bundle; esbuild writes it before paths, and we take it off again. */
export const NAMESPACE = 'files'

/**
 * Makes esbuild ignore the maps that a file names. It follows such an address, also to this machine's own disk, and
 * reads the sources that the map names. Of several comments the last one counts, however each is written, so an empty
 * one at the end wins. A text in a string stays as it is.
 */
export function withoutForeignMap(code: string): string {
  return /sourceMappingURL/i.test(code) ? `${code}\n//# sourceMappingURL= \n` : code
}

/**
 * The map of a bundle, with the files as they were sent: esbuild writes no content into it, so nothing that it might
 * read elsewhere gets there. Names lose the namespace, so that stack traces say `index.ts` beside the bundle.
 */
export function ownMap(map: string, contents: ReadonlyMap<string, string>): string {
  const parsed = JSON.parse(map) as { sources: string[] }
  const sources = parsed.sources.map(withoutNamespace)
  const foreign = parsed.sources.find((source, n) => source === sources[n] || !contents.has(sources[n]!))
  if (foreign !== undefined) {
    throw new DeployError(
      `the source map names ${JSON.stringify(foreign)}, which is not among the files: ` +
        'remove the `sourceMappingURL` comments',
      { path: 'files' },
    )
  }
  return JSON.stringify({ ...parsed, sources, sourcesContent: sources.map((source) => contents.get(source)) })
}

export function withoutNamespace(path: string): string {
  return path.startsWith(`${NAMESPACE}:`) ? path.slice(NAMESPACE.length + 1) : path
}
