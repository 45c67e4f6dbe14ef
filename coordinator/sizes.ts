import { EVENT_DATA_BYTES } from '@windlass/shared/model/event.ts'
import type { Carries } from '@windlass/shared/ops/op.ts'

const KIB = 1024
const MIB = 1024 * KIB

/** How large may be what callers and programs send, in bytes of JSON. Each is a setting. */
export interface Sizes {
  /** Of a body that carries neither files nor inputs nor an answer. */
  maxBodyBytes: number
  /** Of all files of a deploy together. */
  maxBundleBytes: number
  maxInputBytes: number
  /** Of all runs that are started together. */
  maxBatchBytes: number
  maxOutputBytes: number
  maxAnswerBytes: number
  /** Of what another system posts to a webhook or a connection. */
  maxDeliveryBytes: number
  /** Of what a program puts into an event. */
  maxEventDataBytes: number
}

export const DEFAULT_SIZES: Readonly<Sizes> = {
  maxBodyBytes: MIB,
  maxBundleBytes: 50 * MIB,
  maxInputBytes: MIB,
  maxBatchBytes: 16 * MIB,
  maxOutputBytes: MIB,
  maxAnswerBytes: MIB,
  maxDeliveryBytes: 25 * MIB,
  maxEventDataBytes: EVENT_DATA_BYTES,
}

/** Strangers can send what an agent sends, and honest ones send far less. No setting. */
const AGENT_BYTES = 128 * KIB
/** For the fields around an input or an answer. */
const AROUND_BYTES = 64 * KIB
/** What JSON adds to files: 64 MiB for 50. */
const JSON_OF_FILES = 1.28

/** Largest body of a row. */
export function bodyBytes(carries: Carries | undefined, sizes: Sizes): number {
  if (carries === 'files') return Math.ceil(sizes.maxBundleBytes * JSON_OF_FILES)
  if (carries === 'input') return sizes.maxInputBytes + AROUND_BYTES
  if (carries === 'batch') return sizes.maxBatchBytes
  if (carries === 'answer') return sizes.maxAnswerBytes + AROUND_BYTES
  if (carries === 'delivery') return sizes.maxDeliveryBytes
  return carries === 'agent' ? AGENT_BYTES : sizes.maxBodyBytes
}

/** A larger body, over whichever interface, carries files, or many inputs. */
export function mostWithoutFiles({ maxBodyBytes, maxInputBytes, maxAnswerBytes }: Sizes): number {
  return Math.max(maxBodyBytes, maxInputBytes, maxAnswerBytes) + 2 * AROUND_BYTES
}
