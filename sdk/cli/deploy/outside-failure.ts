import path from 'node:path'
import { Failure } from '../failure.ts'

/** An import of something that the importer must not have. */
export interface Outside {
  /** Of the workflow. */
  folder: string
  /** Undefined: a pattern found the file, and esbuild alone knows whose it is; or the workflow asks for it. */
  importer?: string | undefined
  /** The real folder of the importer's package. */
  from?: string | undefined
  file: string
  /** The package that the workflow asks for by name, when the file is not in it. */
  leading?: string | undefined
}

/** @param at The importer by esbuild's account, relative to the folder. */
export function outsideFailure({ folder, importer, from, file, leading }: Outside, at?: string): Failure {
  if (leading !== undefined) return leadingFailure(leading, file)
  const asking = importer === undefined ? at : path.relative(folder, importer)
  const isOwn = from === undefined ? !/(^|[\\/])(node_modules|\.\.)[\\/]/.test(asking ?? '') : from === folder
  if (asking === undefined || isOwn) return ownFailure(folder, file, asking)
  const name = nameOf(from ?? path.resolve(folder, asking))
  return new Failure(
    `The package \`${name}\` imports ${file} (in ${asking.replaceAll(path.sep, '/')}), ` +
      'which is neither a file of that package nor offered by a package that it names.',
    `if \`${name}\` is yours, move the file into it, or make a package of that and import it by name; if it is not, ` +
      'find out what it wants with the file before you deploy with it',
  )
}

function leadingFailure(name: string, file: string): Failure {
  return new Failure(
    `The package \`${name}\` leads to ${file}, which is not a file of that package.`,
    `see what \`main\` and \`exports\` in the package.json of \`${name}\` name before you deploy with it`,
  )
}

function ownFailure(folder: string, file: string, asking: string | undefined): Failure {
  const by = asking === undefined ? '' : ` by ${asking.replaceAll(path.sep, '/')}`
  return new Failure(
    `${path.relative(folder, file)} is imported${by} and lies outside of ${folder}.`,
    'move the file into the workflow folder, or make a package of it',
  )
}

/** `…/node_modules/@scope/pkg/a.js` → `@scope/pkg`; a linked folder is told whole. */
function nameOf(file: string): string {
  const inside = /^.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/s.exec(file)?.[1]
  return inside?.replaceAll('\\', '/') ?? file
}
