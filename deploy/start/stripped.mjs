// Loaded into a part with `--import`, before any TypeScript. Node strips types in every process anew, and its parser stays
// in memory: 30 MB an agent, for text that never changes. Here the stripped text comes from the folder that the start
// process filled (strip.ts); what is not there, or is older than the file, Node strips itself.
import { readFileSync, statSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'

const folder = new URL(import.meta.url).searchParams.get('folder')
const index = JSON.parse(readFileSync(`${folder}/index.json`, 'utf8'))

registerHooks({
  load(url, context, next) {
    const entry = index[url]
    if (entry === undefined || statSync(fileURLToPath(url)).mtimeMs !== entry.mtimeMs) return next(url, context)
    const source = textOf(entry)
    return source === undefined ? next(url, context) : { format: 'module', shortCircuit: true, source }
  },
})

/** Nothing when a start of a later version has removed it. */
function textOf({ file }) {
  try {
    return readFileSync(`${folder}/${file}`, 'utf8')
  } catch {
    return undefined
  }
}
