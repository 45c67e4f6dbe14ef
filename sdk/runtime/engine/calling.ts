import type { WaitCall } from '../waits.ts'
import type { Call } from './call.ts'
import { argumentsOf, cleanName, createCounter, NO_ARGUMENTS, type Arguments } from './identity.ts'
import type { Scopes } from './scopes.ts'

/** Which call it is that the program makes, and in which step. */
export function createCalling(scopes: Scopes) {
  const occurrenceOf = createCounter()

  function callOf(kind: Call['kind'], name: string, { hash, args }: Arguments, work: Call['work']): Call {
    const within = scopes.current()
    const key = { parent: within?.path ?? '', kind, name: cleanName(name), hash }
    const facts = { ...key, occurrence: occurrenceOf(key), n: 0, position: 0, args, site: '', within, work }
    return { ...facts, ...Promise.withResolvers<unknown>() }
  }

  return {
    wait: (wait: WaitCall) => callOf(wait.kind, wait.name, argumentsOf(wait.args), { wait }),
    step: (name: string, act: () => unknown) => callOf('step', name, NO_ARGUMENTS, { act }),
  }
}
