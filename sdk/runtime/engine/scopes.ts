import type { AsyncLocalStorage } from 'node:async_hooks'
import type { Scope } from './call.ts'

export interface Scopes {
  current(): Scope | undefined
  run(scope: Scope, act: () => unknown): unknown
}

/** Which step a call is made in. Programs without steps never load what this takes. */
export function createScopes(): Scopes {
  let storage: AsyncLocalStorage<Scope> | undefined
  return {
    current: () => storage?.getStore(),
    run: (scope, act) => {
      storage ??= new (process.getBuiltinModule('node:async_hooks').AsyncLocalStorage)<Scope>()
      return storage.run(scope, act)
    },
  }
}
