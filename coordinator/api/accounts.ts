import { Fault } from '@windlass/shared/errors.ts'
import type { HandlersFor } from './call.ts'

export const keys: HandlersFor<'keys'> = {
  list: () => {
    throw new Fault('UNAVAILABLE')
  },
  create: () => {
    throw new Fault('UNAVAILABLE')
  },
  revoke: () => {
    throw new Fault('UNAVAILABLE')
  },
}
export const orgs: HandlersFor<'orgs'> = {
  get: () => {
    throw new Fault('UNAVAILABLE')
  },
}
export const account: HandlersFor<'account'> = {
  get: () => {
    throw new Fault('UNAVAILABLE')
  },
}
