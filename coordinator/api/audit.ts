import { Fault } from '@windlass/shared/errors.ts'
import type { HandlersFor } from './call.ts'

export const audit: HandlersFor<'audit'> = {
  list: () => {
    throw new Fault('UNAVAILABLE')
  },
}
