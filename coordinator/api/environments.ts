import { Fault } from '@windlass/shared/errors.ts'
import type { HandlersFor } from './call.ts'

const later = () => {
  throw new Fault('UNAVAILABLE')
}
export const environments: HandlersFor<'environments'> = { list: later, create: later, delete: later }
export const variables: HandlersFor<'variables'> = { list: later, set: later, delete: later }
export const secrets: HandlersFor<'secrets'> = { list: later, set: later, delete: later }
