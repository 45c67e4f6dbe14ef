import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

const LICENCE_FILE = /^(licen[cs]e|notice|copying)(\.(md|txt))?$/i
const PACKAGE = /^(?<folder>.*node_modules\/(?<name>@[^/]+\/[^/]+|[^/]+))\//

/** What the authors of the packages in a bundle want to be passed on with it. `inputs` are esbuild's, relative to `root`. */
export async function licencesOf(what: string, root: string, inputs: readonly string[]): Promise<string> {
  const folders = new Set(inputs.flatMap((input) => PACKAGE.exec(input)?.groups?.['folder'] ?? []))
  const texts = await Promise.all([...folders].toSorted().map((folder) => licenceOf(join(root, folder))))
  return `${what} contains the following packages.\n\n${texts.join('\n')}`
}

async function licenceOf(folder: string): Promise<string> {
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Record<string, unknown>
  const names = (await readdir(folder)).filter((name) => LICENCE_FILE.test(name)).toSorted()
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))
  const title = `${String(manifest['name'])} ${String(manifest['version'])} (${String(manifest['license'])})`
  return [`== ${title}`, '', ...texts.map((text) => `${text.trim()}\n`)].join('\n')
}
