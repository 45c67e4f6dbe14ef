import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'

/** Of an object that the database knows. Another coordinator may have it: it is not gone then, and agents try again. */
export function missingObject(log: Log, digest: string): Fault {
  log.error('object.missing', { digest, advice: SHARE })
  return new Fault('UNAVAILABLE', { digest }, `This coordinator does not have the content ${digest}. ${SHARE}`)
}

/** Of an object whose file holds other bytes than those that were stored. */
export function damagedObject(log: Log, digest: string): Error {
  log.error('object.damaged', {
    digest,
    advice: 'Its file in the folder of objects is damaged: put it back from a backup.',
  })
  return new Error(`the content ${digest} is damaged on disk`)
}

const SHARE =
  'All coordinators of a database need one folder of objects, `objects` in WINDLASS_HOME: mount a shared one, ' +
  'or put the file there that is missing.'
