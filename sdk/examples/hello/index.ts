import { log } from 'windlass'

export interface Input {
  /** Who is greeted. */
  name: string
}

export async function run(input: Input): Promise<{ greeting: string }> {
  log(`greeting ${input.name}`)
  return { greeting: `Hello, ${input.name}!` }
}
