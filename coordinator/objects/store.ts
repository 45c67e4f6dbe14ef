import type { Readable } from 'node:stream'

export type ObjectStat = { size: number; modifiedAt: number }
export type ObjectBody = Uint8Array | AsyncIterable<Uint8Array>

/** Where bundles, artifacts and large payloads lie. A folder by default, S3 when there are several coordinators. */
export interface ObjectStore {
  /** Durable when it resolves. Another object under the key is replaced as a whole; readers see the old or the new one. */
  put(key: string, body: ObjectBody): Promise<ObjectStat>
  stream(key: string): Promise<Readable | null>
  stat(key: string): Promise<ObjectStat | null>
  /** Whether there was anything to delete. */
  delete(key: string): Promise<boolean>
}
