import type { WaitCall } from '../../../runtime/waits.ts'
import type { Tools } from './process.ts'

const toError = ({ message, code }: { message: string; code?: string | number }) =>
  Object.assign(new Error(message), { code })

/** The calls of the SDK, as it makes them, on an engine of the test's own. */
export function callsOn({ engine }: Pick<Tools, 'engine'>) {
  const wait = (call: Omit<WaitCall, 'toError'>) => engine.wait({ ...call, toError })
  return {
    sleep: (ms: number) => wait({ kind: 'sleep', name: '', args: ms, ask: { for: 'sleep', ms } }),
    ask: (prompt: string, more: object = {}) =>
      wait({
        kind: 'input',
        name: prompt,
        args: { prompt, ...more },
        ask: { for: 'input', prompt, schemaText: null, timeoutMs: null, onTimeoutText: null },
      }),
    call: (workflow: string, input: unknown) =>
      wait({
        kind: 'child',
        name: workflow,
        args: { input },
        ask: { for: 'child', workflow, inputText: JSON.stringify(input), version: null, tags: [], priority: 0 },
      }),
    step: (name: string, act: () => unknown) => engine.step(name, act),
  }
}

export type Calls = ReturnType<typeof callsOn>
