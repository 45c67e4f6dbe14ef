import type { Client } from 'windlass/client'

/** The workflows that the bench runs, by slug. */
const PROGRAMS: Record<string, { process: 'fresh' | 'reuse'; source: string }> = {
  'first-line': { process: 'fresh', source: firstLine() },
  'first-line-reuse': { process: 'reuse', source: firstLine() },
  'noop-fresh': { process: 'fresh', source: 'export async function run(): Promise<null> {\n  return null\n}\n' },
  'noop-reuse': { process: 'reuse', source: 'export async function run(): Promise<null> {\n  return null\n}\n' },
  chatty: {
    process: 'fresh',
    source: `export async function run(input: { lines: number }): Promise<number> {
  for (let i = 0; i < input.lines; i++) console.log('line ' + i + ' of a program that says a good deal about its work')
  return input.lines
}
`,
  },
}

/** Prints the moment at which its first statement was executed. */
function firstLine(): string {
  return 'export async function run(): Promise<number> {\n  const at = performance.timeOrigin + performance.now()\n  console.log(at)\n  return at\n}\n'
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
