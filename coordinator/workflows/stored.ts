import { join } from 'node:path'
import type { Log } from '@windlass/shared/log.ts'
import type { Config } from '../config.ts'
import { type BytesInFlight, createBytesInFlight } from '../limits/bytes-in-flight.ts'
import { createPace } from '../pace.ts'
import { openFolderStore } from '../objects/folder.ts'
import type { ObjectStore } from '../objects/store.ts'
import { createSources, type Sources } from './sources.ts'

/** What lies beside the database, and the ways to it. */
export interface Stored {
  objects: ObjectStore
  /** Limits the bytes of deployed files that are being read. */
  reads: BytesInFlight
  sources: Sources
}

type Settings = Pick<Config, 'home' | 'diskReserveBytes' | 'maxDeploysBytes' | 'maxOrgDeploysBytes'>

export async function openStored(settings: Settings, log: Log): Promise<Stored> {
  const { home, diskReserveBytes, maxDeploysBytes, maxOrgDeploysBytes } = settings
  const objects = await openFolderStore(join(home, 'objects'), { reserveBytes: diskReserveBytes })
  // Beside that of deploys: a reader may be slow, and is to keep nobody from deploying.
  const reads = createBytesInFlight({ org: maxOrgDeploysBytes, all: maxDeploysBytes }, { what: 'Reads of files' })
  return { objects, reads, sources: createSources({ objects, log, inFlight: reads, pace: createPace() }) }
}
