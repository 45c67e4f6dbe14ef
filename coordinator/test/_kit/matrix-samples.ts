/** What each row of the table is asked for by the matrix: the ids come from the tenant, the rest stands here. */
import { pathNames } from '@windlass/shared/ops/fill-route.ts'
import type { AnyOp } from '@windlass/shared/ops/op.ts'
import { aPackage, type Tenant } from './tenants.ts'

export type Args = Record<string, unknown>

/**
 * Beside what the path names, for rows that need more, and for those that shall do something. A row whose fields may
 * all be left out needs no line.
 */
const SAMPLES: Readonly<Record<string, (tenant: Tenant) => Args>> = {
  'workflows.create': () => ({ files: aPackage('brand-new') }),
  'workflows.file': () => ({ path: 'index.ts' }),
  'workflows.update': ({ ids }) => ({ files: aPackage(ids['workflow']!, 2) }),
  'workflows.restore': () => ({ slug: 'brought-back' }),
  'workflows.createVersion': ({ ids }) => ({ files: aPackage(ids['workflow']!, 2) }),
  'workflows.promote': () => ({ version: 1 }),
  'workflows.getVersion': () => ({ version: 1 }),
  'runs.trigger': () => ({ input: { name: 'Ada' } }),
  'runs.batch': () => ({ items: [{ input: { name: 'Ada' } }] }),
  'runs.cancel': () => ({ reason: 'asked to' }),
  'schedules.create': ({ ids }) => ({ workflow: ids['workflow'], rate: '1h' }),
  'schedules.update': () => ({ name: 'renamed' }),
  'runs.bulkCancel': () => ({ filter: { tag: 'nobody has it' } }),
  'runs.bulkRetry': () => ({ filter: { tag: 'nobody has it' } }),
  'inputs.respond': () => ({ answer: true }),
  'environments.create': () => ({ name: 'brand-new' }),
  'variables.set': () => ({ value: 'on' }),
  'secrets.set': () => ({ value: 'hunter2 hunter2' }),
  'webhooks.set': () => ({ auth: 'bearer' }),
  'connections.create': () => ({ name: 'brand-new', kind: 'github' }),
  'connections.update': () => ({ enabled: false }),
  'connections.test': () => ({ payload: {} }),
  'pools.create': () => ({ name: 'brand-new' }),
  'pools.update': () => ({ settings: { slots: 3 } }),
  'retention.update': () => ({ runsDays: 90, deliveriesDays: 90 }),
  'runners.deregister': () => ({ force: true }),
  'keys.create': () => ({ name: 'brand-new', role: 'viewer' }),
  'runnerSurface.register': () => ({ token: 'wlr_none', name: 'x', slots: 1, version: '1', platform: 'linux' }),
  'runnerSurface.renew': () => ({ publicKey: { kty: 'OKP', crv: 'Ed25519', x: 'A'.repeat(43) } }),
  'runnerSurface.claims': () => ({ slots: 1, waitMs: 0 }),
  'runnerSurface.journal': () => ({ epoch: 1 }),
  'service.docsFile': () => ({ file: 'swagger-ui.css' }),
  'service.download': () => ({ file: 'SHA256SUMS' }),
}

/** The arguments of a call that concerns this tenant. */
export function sampleArgs(row: AnyOp, tenant: Tenant): Args {
  const sample = SAMPLES[row.id]
  const unsaid = sample ? undefined : neededBeside(row)
  if (unsaid !== undefined)
    throw new Error(`${row.id} takes \`${unsaid}\`: give it one in coordinator/test/_kit/matrix-samples.ts`)
  const given = sample?.(tenant) ?? {}
  const missing = pathNames(row.path).filter((name) => !(name in given))
  const nameless = missing.find((name) => !(name in tenant.ids))
  if (nameless !== undefined)
    throw new Error(
      `the path of ${row.id} names {${nameless}}: give each tenant one in coordinator/test/_kit/tenants.ts`,
    )
  return { ...given, ...Object.fromEntries(missing.map((name) => [name, tenant.ids[name]])) }
}

/** A field that may not be left out, and that the path does not name. */
const neededBeside = (row: AnyOp): string | undefined =>
  Object.entries(row.input.shape)
    .filter(([name, schema]) => !pathNames(row.path).includes(name) && !schema.safeParse(undefined).success)
    .map(([name]) => name)[0]

/** Rows whose path names nothing that belongs to an org. */
const WORLDWIDE = new Set(['org', 'version', 'file', 'path'])

/** What the path names that belongs to one org, beside the org itself. */
export function ownedNames(row: AnyOp): string[] {
  return pathNames(row.path).filter((name) => !WORLDWIDE.has(name))
}

/** Things of an org that a row is given outside of its path, and that must be the caller's own. */
export const REFERENCES: Readonly<Record<string, string>> = {
  'runs.list': 'workflow',
  'schedules.create': 'workflow',
  'schedules.list': 'workflow',
  'deliveries.list': 'workflow',
  'variables.list': 'environment',
  'variables.set': 'environment',
  'variables.delete': 'environment',
  'secrets.list': 'environment',
  'secrets.set': 'environment',
  'secrets.delete': 'environment',
}
