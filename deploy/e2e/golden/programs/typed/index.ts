export interface Input {
  /** A name of 1 to 20 letters. */
  name: string
  times?: number
}

export interface Output {
  greetings: string[]
}

/** Returns what it declares, but for the name of a liar. */
export async function run({ name, times = 1 }: Input): Promise<Output> {
  if (name === 'Liar') return JSON.parse('{"greetings":["Hello",2]}') as Output
  return { greetings: Array.from({ length: times }, () => `Hello, ${name}!`) }
}
