import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { differing } from './diff.ts'

/** Something that was done, and all that was answered to it. */
export interface Act {
  readonly name: string
  readonly text: string
}

/** To accept a wanted change: npx node deploy/e2e/golden/golden.test.ts --update */
const UPDATE = 'npx node deploy/e2e/golden/golden.test.ts --update'
const HEAD = '=== '

const fileOf = (name: string) => join(import.meta.dirname, `${name}.golden.txt`)

export function render(acts: readonly Act[]): string {
  return acts.map(({ name, text }) => `${HEAD}${name}\n${text.trimEnd()}\n`).join('\n')
}

export function parse(text: string): Act[] {
  const parts = `\n${text}`.split(`\n${HEAD}`).slice(1)
  return parts.map((part) => {
    const end = part.indexOf('\n')
    return { name: part.slice(0, end), text: part.slice(end + 1).trimEnd() }
  })
}

export function goldenText(name: string): string {
  return existsSync(fileOf(name)) ? readFileSync(fileOf(name), 'utf8') : ''
}

/** The acts as they are written down. */
export function goldenActs(name: string): Act[] {
  return parse(goldenText(name))
}

/** Writes them down when the change was said to be wanted; else throws where an act differs from what is written. */
export function keepsTo(name: string, acts: readonly Act[]): void {
  const twice = acts.find((act, n) => acts.findIndex((other) => other.name === act.name) !== n)
  if (twice) throw new Error(`${name}: two acts have the name "${twice.name}"`)
  if (process.argv.includes('--update')) return writeFileSync(fileOf(name), render(acts))
  const wrong = changesIn(goldenActs(name), acts)
  if (wrong.length === 0) return
  throw new Error(`${name}.golden.txt says otherwise of ${wrong.length} acts. Wanted? ${UPDATE}\n\n${wrong.join('\n')}`)
}

/** A unified diff for each act that is not as it was, with its name. */
export function changesIn(before: readonly Act[], after: readonly Act[]): string[] {
  const was = new Map(before.map((act) => [act.name, act.text]))
  const is = new Map(after.map((act) => [act.name, act.text.trimEnd()]))
  const names = [...new Set([...was.keys(), ...is.keys()])]
  const changed = names
    .filter((name) => was.get(name) !== is.get(name))
    .map((name) => `--- ${name}\n${differing(was.get(name) ?? '', is.get(name) ?? '')}`)
  const shared = (acts: readonly Act[]) => acts.map(({ name }) => name).filter((name) => was.has(name) && is.has(name))
  if (shared(before).join('\n') === shared(after).join('\n')) return changed
  return [...changed, `--- the order of the acts\n${differing(shared(before).join('\n'), shared(after).join('\n'))}`]
}
