import type { Client } from 'windlass/client'

/** The workflows that the bench runs, by slug. */
const PROGRAMS: Record<string, { process: 'fresh' | 'reuse'; source: string }> = {
  'first-line': { process: 'fresh', source: firstLine() },
  'first-line-reuse': { process: 'reuse', source: firstLine() },
  'noop-fresh': { process: 'fresh', source: 'export async function run(): Promise<null> {\n  return null\n}\n' },
  'noop-reuse': { process: 'reuse', source: 'export async function run(): Promise<null> {\n  return null\n}\n' },
  asks: { process: 'fresh', source: asks() },
  sleeps: { process: 'reuse', source: sleeps() },
  steps: { process: 'reuse', source: steps() },
  'fan-out': { process: 'reuse', source: fanOut() },
  chatty: {
    process: 'fresh',
    source: `export async function run(input: { lines: number }): Promise<number> {
  for (let i = 0; i < input.lines; i++) console.log('line ' + i + ' of a program that says a good deal about its work')
  return input.lines
}
`,
  },
}

// Programs read the clock with `process.hrtime`, which every process has from its start. What a probe loads would be
// measured as part of the product: the first use of `performance` takes 1.5 ms.

/** Returns when it executed its first statement and when its first line had left, both in ns of the host's clock. */
function firstLine(): string {
  return `export async function run(): Promise<string[]> {
  const began = process.hrtime.bigint()
  console.log('the first line of a program')
  return [String(began), String(process.hrtime.bigint())]
}
`
}

/** Asks one question after the other, and prints the moments at which it went on, the first of them its start. */
function asks(): string {
  return `import { requestInput } from 'windlass'
const now = () => Number(process.hrtime.bigint()) / 1e6
export async function run(input: { questions: number; afterMs?: number }): Promise<number> {
  console.log(now())
  if (input.afterMs !== undefined) await new Promise((resolve) => setTimeout(resolve, input.afterMs))
  for (let i = 0; i < input.questions; i++) {
    await requestInput({ prompt: 'Go on?' })
    console.log(now())
  }
  return input.questions
}
`
}

/** Returns by how much it slept too long, each time. */
function sleeps(): string {
  return `import { sleep } from 'windlass'
const now = () => Number(process.hrtime.bigint()) / 1e6
export async function run(input: { times: number; ms: number }): Promise<number[]> {
  const over: number[] = []
  for (let i = 0; i < input.times; i++) {
    const since = now()
    await sleep(input.ms)
    over.push(now() - since - input.ms)
  }
  return over
}
`
}

/** Returns how long it took, in milliseconds. */
function steps(): string {
  return `import { step } from 'windlass'
const now = () => Number(process.hrtime.bigint()) / 1e6
export async function run(input: { count: number; together: boolean }): Promise<number> {
  const since = now()
  if (input.together) await Promise.all(Array.from({ length: input.count }, (_, i) => step('one', () => i)))
  else for (let i = 0; i < input.count; i++) await step('one', () => i)
  return now() - since
}
`
}

function fanOut(): string {
  return `import { workflows } from 'windlass'
export async function run(input: { children: number }): Promise<number> {
  const calls = Array.from({ length: input.children }, () => workflows.call('noop-reuse', {}))
  return (await Promise.all(calls)).length
}
`
}

export async function deployPrograms(client: Client): Promise<void> {
  for (const [slug, { process, source }] of Object.entries(PROGRAMS)) {
    const descriptor = JSON.stringify({ slug, process })
    await client.workflows.create({
      files: [
        { path: 'workflow.jsonc', content: descriptor },
        { path: 'index.ts', content: source },
      ],
    })
  }
}
