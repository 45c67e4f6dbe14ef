import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parse } from 'jsonc-parser'

/** A name of `paths` in a tsconfig.json, such as `@lib/*`, and the file that has it. */
export interface Alias {
  name: string
  file: string
}

const MOST_EXTENDED = 10

interface Config {
  extends?: unknown
  compilerOptions?: { paths?: Record<string, unknown> }
}

/** The alias that an import means, by the nearest tsconfig.json and what that extends; undefined: it is none. */
export function aliasOf(folder: string, specifier: string): Alias | undefined {
  const left = nearestConfig(folder)
  // A file that extends itself comes to an end too.
  for (let read = 0; left.length > 0 && read < MOST_EXTENDED; read++) {
    const file = left.shift()!
    const config = readConfig(file)
    const names = Object.keys(config?.compilerOptions?.paths ?? {})
    const name = names.find((each) => matches(each, specifier))
    if (name !== undefined) return { name, file }
    left.push(...extendedBy(file, config))
  }
  return undefined
}

function nearestConfig(folder: string): string[] {
  for (let at = folder; ; at = path.dirname(at)) {
    for (const name of ['tsconfig.json', 'jsconfig.json']) {
      const file = path.join(at, name)
      if (readConfig(file)) return [file]
    }
    if (at === path.dirname(at)) return []
  }
}

function readConfig(file: string): Config | undefined {
  try {
    return parse(readFileSync(file, 'utf8')) as Config
  } catch {
    // It is not there, or is none of ours to read: it has no aliases then.
    return undefined
  }
}

/** Those of npm packages are left out: they have no aliases for this folder. */
function extendedBy(file: string, config: Config | undefined): string[] {
  return [config?.extends].flat().flatMap((given) => {
    if (typeof given !== 'string' || !/^\.{0,2}\//.test(given)) return []
    return [path.resolve(path.dirname(file), given.endsWith('.json') ? given : `${given}.json`)]
  })
}

function matches(alias: string, specifier: string): boolean {
  const [start = '', end] = alias.split('*')
  if (end === undefined) return alias === specifier
  return specifier.startsWith(start) && specifier.endsWith(end)
}
