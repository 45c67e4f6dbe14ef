/** Environments, and keys for what is secret in them. */
import { randomBytes } from 'node:crypto'
import { ops } from '@windlass/shared/ops/index.ts'
import { type TestCoordinator } from './coordinator.ts'

export async function anEnvironment(c: Pick<TestCoordinator, 'call' | 'org'>, name: string): Promise<string> {
  await c.call(ops.environments.create, { org: c.org, name })
  return name
}

/** What WINDLASS_SECRET_KEY takes. */
export function aKeyText(): string {
  return randomBytes(32).toString('base64')
}
