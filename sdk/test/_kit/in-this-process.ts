import type { TestContext } from 'node:test'
import { main } from '../../cli/program.ts'
import type { Ended } from './run-cli.ts'

/** A process for each of sixty commands would take a minute. */
export async function inThisProcess(t: TestContext, args: string[]): Promise<Ended> {
  const said = await capturing(t, () => main(args))
  const code = Number(process.exitCode ?? 0)
  process.exitCode = undefined
  return { code, ...said }
}

/** What is written meanwhile. */
export async function capturing(t: TestContext, work: () => Promise<void>): Promise<Omit<Ended, 'code'>> {
  const said = { stdout: '', stderr: '' }
  const mocks = (['stdout', 'stderr'] as const).map((name) => {
    const write = process[name].write.bind(process[name])
    return t.mock.method(process[name], 'write', (text: string | Uint8Array) => {
      // The test runner speaks over the same streams, in bytes.
      if (typeof text !== 'string') return write(text)
      said[name] += text
      return true
    })
  })
  try {
    await work()
    return said
  } finally {
    for (const mock of mocks) mock.mock.restore()
  }
}
