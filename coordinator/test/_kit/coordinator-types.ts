/**
 * What a test sees of a coordinator. In a file of its own, since those who lend a coordinator know nothing else of it.
 */
import type { OrgId, PoolId } from '@windlass/shared/ids.ts'
import type { CallOptions } from '@windlass/shared/ops/base.ts'
import type { Op } from '@windlass/shared/ops/op.ts'
import type { z } from 'zod'
import type { Config } from '../../config.ts'
import type { Db } from '../../db/client.ts'
import type { Coordinator } from '../../start.ts'

export interface TestCoordinator {
  url: string
  db: Db
  deps: Coordinator['deps']
  /** Slug of the org that the test works in. */
  org: string
  orgId: OrgId
  /** Of the pool `default`. */
  poolId: PoolId
  /** An owner's. */
  apiKey: string
  /** Calls an operation, as the owner unless another key is given. */
  call<I extends z.ZodObject, O extends z.ZodType>(
    row: Op<I, O>,
    args: z.input<I>,
    options?: CallOptions & { apiKey?: string },
  ): Promise<z.output<O>>
  /** A coordinator more over the same database and the same objects. */
  another(settings?: Settings, config?: Partial<Config>): Promise<TestCoordinator>
  /** Does this when it stops: closes what a test opened and need not close itself. */
  onStop(act: () => void): void
  stop(): Promise<void>
}

/** `WINDLASS_…` by what follows: `{ LEASE_MS: 400 }`. */
export type Settings = Record<string, string | number>
