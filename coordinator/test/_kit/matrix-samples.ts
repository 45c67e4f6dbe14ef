/** What each row of the table is asked for when the matrix knocks: the ids come from the tenant, the rest stands here. */
import { pathNames } from '@windlass/shared/ops/place.ts'
import type { AnyOp } from '@windlass/shared/ops/op.ts'
import { aPackage, type Tenant } from './tenants.ts'

export type Args = Record<string, unknown>

/** Beside what the path names. Every row is here, so that a new one is thought of. */
const SAMPLES: Readonly<Record<string, (tenant: Tenant) => Args>> = {
  'workflows.list': () => ({}),
  'workflows.create': () => ({ files: aPackage('brand-new') }),
  'workflows.get': () => ({}),
  'workflows.file': () => ({ path: 'index.ts' }),
  'workflows.update': ({ ids }) => ({ files: aPackage(ids['workflow']!, 2) }),
  'workflows.delete': () => ({}),
  'workflows.restore': () => ({ slug: 'brought-back' }),
  'workflows.disable': () => ({}),
  'workflows.enable': () => ({}),
  'workflows.listVersions': () => ({}),
  'workflows.createVersion': ({ ids }) => ({ files: aPackage(ids['workflow']!, 2) }),
  'workflows.promote': () => ({ version: 1 }),
  'workflows.getVersion': () => ({ version: 1 }),
  'runs.trigger': () => ({ input: { name: 'Ada' } }),
  'runs.batch': () => ({ items: [{ input: { name: 'Ada' } }] }),
  'runs.list': () => ({}),
  'runs.get': () => ({}),
  'runs.input': () => ({}),
  'runs.output': () => ({}),
  'runs.events': () => ({}),
  'runs.stream': () => ({}),
  'events.stream': () => ({}),
  'runs.cancel': () => ({ reason: 'asked to' }),
  'runs.retry': () => ({}),
  'runs.children': () => ({}),
  'runs.why': () => ({}),
  'runs.restart': () => ({}),
  'schedules.create': ({ ids }) => ({ workflow: ids['workflow'], rate: '1h' }),
  'schedules.list': () => ({}),
  'schedules.get': () => ({}),
  'schedules.update': () => ({ name: 'renamed' }),
  'schedules.delete': () => ({}),
  'schedules.run': () => ({}),
  'schedules.ticks': () => ({}),
  'schedules.why': () => ({}),
  'runs.delete': () => ({}),
  'runs.bulkCancel': () => ({ filter: { tag: 'nobody has it' } }),
  'runs.bulkRetry': () => ({ filter: { tag: 'nobody has it' } }),
  'jobs.list': () => ({}),
  'jobs.get': () => ({}),
  'jobs.cancel': () => ({}),
  'inputs.list': () => ({}),
  'inputs.get': () => ({}),
  'inputs.respond': () => ({ answer: true }),
  'environments.list': () => ({}),
  'environments.create': () => ({ name: 'brand-new' }),
  'environments.delete': () => ({}),
  'variables.list': () => ({}),
  'variables.set': () => ({ value: 'on' }),
  'variables.delete': () => ({}),
  'secrets.list': () => ({}),
  'secrets.set': () => ({ value: 'hunter2 hunter2' }),
  'secrets.delete': () => ({}),
  'webhooks.get': () => ({}),
  'webhooks.set': () => ({ auth: 'bearer' }),
  'webhooks.rotate': () => ({}),
  'connections.create': () => ({ name: 'brand-new', kind: 'github' }),
  'connections.list': () => ({}),
  'connections.get': () => ({}),
  'connections.update': () => ({ enabled: false }),
  'connections.delete': () => ({}),
  'connections.setSecret': () => ({}),
  'connections.test': () => ({ payload: {} }),
  'connections.deliveries': () => ({}),
  'deliveries.list': () => ({}),
  'deliveries.get': () => ({}),
  'deliveries.payload': () => ({}),
  'deliveries.replay': () => ({}),
  'hooks.receive': () => ({}),
  'hooks.probe': () => ({}),
  'hooks.receiveInbound': () => ({}),
  'hooks.probeInbound': () => ({}),
  'pools.list': () => ({}),
  'pools.create': () => ({ name: 'brand-new' }),
  'pools.createToken': () => ({}),
  'pools.get': () => ({}),
  'pools.update': () => ({ settings: { slots: 3 } }),
  'pools.delete': () => ({}),
  'pools.demand': () => ({}),
  'runners.list': () => ({}),
  'runners.get': () => ({}),
  'runners.plan': () => ({}),
  'runners.cordon': () => ({}),
  'runners.drain': () => ({}),
  'runners.resume': () => ({}),
  'runners.revoke': () => ({}),
  'runners.deregister': () => ({ force: true }),
  'keys.list': () => ({}),
  'keys.create': () => ({ name: 'brand-new', role: 'viewer' }),
  'keys.revoke': () => ({}),
  'orgs.get': () => ({}),
  'account.get': () => ({}),
  'audit.list': () => ({}),
  'runnerSurface.register': () => ({ token: 'wlr_none', name: 'x', slots: 1, version: '1', platform: 'linux' }),
  'runnerSurface.renew': () => ({ publicKey: { kty: 'OKP', crv: 'Ed25519', x: 'A'.repeat(43) } }),
  'runnerSurface.claims': () => ({ slots: 1, waitMs: 0 }),
  'runnerSurface.bundle': () => ({}),
  'runnerSurface.socket': () => ({}),
  'runnerSurface.journal': () => ({ epoch: 1 }),
  'runnerSurface.self': () => ({}),
  'runnerSurface.secrets': () => ({}),
  'service.health': () => ({}),
  'service.ready': () => ({}),
  'service.metrics': () => ({}),
  'service.openapi': () => ({}),
  'service.docs': () => ({}),
  'service.docsFile': () => ({ file: 'swagger-ui.css' }),
  'service.workflowSchema': () => ({}),
  'service.install': () => ({}),
  'service.download': () => ({ file: 'SHA256SUMS' }),
  'service.protectedResource': () => ({}),
}

/** The arguments of a call that concerns this tenant. */
export function sampleArgs(row: AnyOp, tenant: Tenant): Args {
  const sample = SAMPLES[row.id]
  if (!sample) throw new Error(`${row.id} has no sample arguments: add it to coordinator/test/_kit/matrix-samples.ts`)
  const given = sample(tenant)
  const missing = pathNames(row.path).filter((name) => !(name in given))
  const nameless = missing.find((name) => !(name in tenant.ids))
  if (nameless !== undefined)
    throw new Error(
      `the path of ${row.id} names {${nameless}}: give each tenant one in coordinator/test/_kit/tenants.ts`,
    )
  return { ...given, ...Object.fromEntries(missing.map((name) => [name, tenant.ids[name]])) }
}

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
