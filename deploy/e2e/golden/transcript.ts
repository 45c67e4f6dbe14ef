import { programFiles } from '../_kit/runs.ts'
import type { Act } from './golden-file.ts'
import { layout } from './layout.ts'
import { Stage } from './stage.ts'
import type { Names } from './stable.ts'
import type { Org, Part, World } from './world.ts'

/** Longer texts are known by their beginning and their length. */
const LONG = 400

/** What is asked of one org over one interface, and what is answered, in the order in which it is done. */
export class Transcript {
  readonly org: Org
  readonly names: Names
  readonly acts: Act[] = []

  constructor(world: World, part: Part) {
    this.org = world.org(part)
    this.names = world.names()
  }

  /** All acts, once the work is done. One that cannot go on says which answer it did not expect. */
  async whole(work: () => Promise<void>): Promise<Act[]> {
    try {
      await work()
    } catch (cause) {
      const { name, text } = this.acts.at(-1) ?? { name: 'nothing', text: '' }
      throw new Error(`It could not go on after "${name}": ${(cause as Error).message}\n${text}`, { cause })
    }
    return this.acts
  }

  add(name: string, ...lines: string[]): void {
    this.acts.push({ name, text: lines.join('\n') })
  }

  /** What was answered, all of it. */
  json(value: unknown): string {
    return layout(this.names.value(value))
  }

  /** What was asked: of long texts the beginning says enough. */
  asked(value: unknown): string {
    return layout(this.names.value(shortened(value)))
  }

  /** The run, watched: what is asked of it has to be the same at whatever moment it is asked. */
  watch(run: string): Stage {
    return new Stage(this.org.client, run)
  }

  async ended(run: string): Promise<void> {
    await this.watch(run).over()
  }
}

function shortened(value: unknown): unknown {
  if (typeof value === 'string' && value.length > LONG) return `${value.slice(0, 60)}… (${value.length} characters)`
  if (Array.isArray(value)) return value.map(shortened)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, shortened(each)]))
}

/** A program beside the tests, as it is deployed. */
export function filesOf(program: string, descriptor: object) {
  const files = programFiles(`../golden/programs/${program}`, descriptor)
  return Object.entries(files).map(([path, content]) => ({ path, content }))
}
