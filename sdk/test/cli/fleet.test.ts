import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { PoolSettings } from '@windlass/shared/model/pool.ts'
import type { RunnerPool } from '@windlass/shared/model/pool.ts'
import { startFake } from '../_kit/fake-service.ts'
import { runCli } from '../_kit/run-cli.ts'
import { aRunner, anIntake } from '../_kit/samples.ts'

function aPool(settings: object = {}): RunnerPool {
  const plain = { org: 'acme', name: 'builders', runners: 2, queuedRuns: 3, createdAt: 0 }
  return { id: newId('pool'), ...plain, settings: PoolSettings.parse(settings) }
}

test('settings of a pool are flags, in the units that people use', async (t) => {
  const { url, asked } = await startFake(t, { 'pools.create': () => ({ runnerPool: aPool() }) })
  const flags = ['--isolation', 'bubblewrap', '--network', 'none', '--memory', '2g', '--disk', '512', '--cpus', '0.5']
  const more = ['--labels', 'eu,ssd', '--reassign-after', '2m', '--parked', '0s', '--slots', '8']
  const { code, stderr } = await runCli(['pools', 'create', 'builders', ...flags, ...more], { url })
  assert.equal(code, 0, stderr)
  assert.deepEqual(asked[0]?.args, {
    org: 'acme',
    name: 'builders',
    settings: {
      isolation: 'bubblewrap',
      network: 'none',
      limits: { memoryMb: 2048, diskMb: 512, cpus: 0.5 },
      labels: ['eu', 'ssd'],
      reassignAfterMs: 120_000,
      parkedMs: 0,
      slots: 8,
    },
  })
})

test('an update says only what changes, --reset takes back, and flags go over --settings', async (t) => {
  const pool = aPool({ limits: { memoryMb: 4096 }, labels: ['eu'] })
  const { url, asked } = await startFake(t, {
    'pools.update': () => ({ runnerPool: pool }),
  })
  const json = '{"slots":4,"limits":{"cpus":2,"memoryMb":1}}'
  const given = ['--settings', json, '--reset', 'isolation,processes', '--memory', '4GiB']
  const { code, stdout, stderr } = await runCli(['pools', 'update', 'builders', ...given], { url })
  assert.equal(code, 0, stderr)
  assert.deepEqual(asked.at(-1)?.args, {
    pool: 'builders',
    settings: { slots: 4, isolation: 'process', limits: { cpus: 2, memoryMb: 4096, processes: null } },
  })
  assert.match(stdout, /^memory +4096 MiB$/m)
  assert.match(stdout, /^labels +eu$/m)
  assert.match(stdout, /^reassign-after +-$/m)
})

test('a setting that is none, no size or no change at all is refused before anything is asked', async (t) => {
  const { url, asked } = await startFake(t)
  const refused = async (...args: string[]) => {
    const { code, stderr } = await runCli(['pools', 'update', 'builders', ...args], { url })
    assert.equal(code, 2, stderr)
    return stderr
  }
  assert.match(await refused('--memory', 'much'), /--memory takes a size, not `much`/)
  assert.match(await refused('--slots', 'many'), /--slots takes a number/)
  assert.match(await refused('--reset', 'memry'), /`memry` is no setting.*\nNext: one or more of isolation/)
  assert.match(await refused('--settings', '[]'), /takes an object/)
  assert.match(await refused('--isolation', 'vm'), /process, bubblewrap/)
  assert.match(await refused(), /Nothing was said that is to change/)
  assert.deepEqual(asked, [])
})

test('demand says what waits, for how long, and what is missing', async (t) => {
  const demand = {
    pool: { id: newId('pool'), name: 'builders' },
    queuedRuns: 3,
    queuedSlots: 5,
    oldestQueuedAt: Date.now() - 3_690_000,
    executingRuns: 8,
    usedSlots: 8,
    slots: 8,
    freeSlots: 0,
    runners: { online: 1, takingWork: 1, draining: 0, offline: 2 },
    missingSlots: 5,
    byLabels: [{ labels: ['gpu'], queuedRuns: 1, queuedSlots: 2, freeSlots: 0 }],
  }
  const { url, asked } = await startFake(t, { 'pools.demand': () => ({ demand }) })
  const { stdout } = await runCli(['pools', 'demand', 'builders'], { url })
  assert.match(stdout, /^queued +3 runs, 5 slots, the oldest for 1 h 1 min$/m)
  assert.match(stdout, /^missing +5 slots$/m)
  assert.match(stdout, /^gpu\t1\t2\t0$/m)
  assert.deepEqual(asked[0]?.args, { org: 'acme', pool: 'builders' })
})

test('runners list says in one word how each machine is, and how the old ones are upgraded', async (t) => {
  const upgrade = { message: 'Too old.', command: 'curl -fsSL http://a/install.sh | sh -s -- --upgrade' }
  const unready = [{ check: 'disk', message: 'full' }]
  const quarantine = { since: 0, until: 1, reason: 'x' }
  const machines = [
    aRunner({ name: 'a' }),
    aRunner({ name: 'b', status: 'offline', unready }),
    aRunner({ name: 'c', intake: anIntake({ state: 'draining' }), upgrade }),
    aRunner({ name: 'd', intake: anIntake({ state: 'drained' }) }),
    aRunner({ name: 'e', intake: anIntake({ state: 'cordoned' }), quarantine }),
    aRunner({ name: 'f', quarantine, unready }),
    aRunner({ name: 'g', unready, upgrade }),
    aRunner({ name: 'h', upgrade, version: '0.0.9' }),
    aRunner({ name: 'i', status: 'offline', intake: anIntake({ state: 'revoked' }) }),
  ]
  const { url, asked } = await startFake(t, { 'runners.list': () => ({ runners: machines, nextCursor: null }) })
  const { stdout, stderr } = await runCli(['runners', 'list', '--intake', 'open'], { url })
  const states = stdout.trimEnd().split('\n')
  assert.deepEqual(
    states.map((line) => line.split('\t')).map((cells) => [cells[1], cells[3]].join(' ')),
    [
      'a online',
      'b offline',
      'c draining',
      'd drained',
      'e cordoned',
      'f quarantined',
      'g unready',
      'h outdated',
      'i revoked',
    ],
  )
  assert.equal(stderr, `Older than the service: c, g, h. Next, there: ${upgrade.command}\n`)
  assert.equal(asked[0]?.args['intake'], 'open')
})

test('a runner is known by its name, across pages, and by its id alone where two share the name', async (t) => {
  const [one, two, other] = [aRunner({ name: 'twin' }), aRunner({ name: 'twin' }), aRunner({ name: 'other' })]
  const { url, asked } = await startFake(t, {
    'runners.list': ({ cursor }) =>
      cursor === undefined ? { runners: [one, other], nextCursor: 'more' } : { runners: [two], nextCursor: null },
    'runners.get': () => ({ runner: other }),
  })
  assert.match((await runCli(['runners', 'get', 'other'], { url })).stdout, new RegExp(`^runner +${other.id}\n`))
  assert.equal(asked.at(-1)?.args['runner'], other.id)
  const { code, stderr } = await runCli(['runners', 'cordon', 'twin'], { url })
  assert.equal(code, 2)
  assert.match(stderr, /2 runners are called `twin`:/)
  for (const { id } of [one, two]) assert.ok(stderr.includes(id))
  assert.equal((await runCli(['runners', 'get', 'nobody'], { url })).code, 4)
  assert.deepEqual((await runCli(['complete', '--', 'runners', 'get', 'oth'], { url })).stdout.split('\t')[0], 'other')
})

test('runners get tells everything that keeps a machine from work', async (t) => {
  const by = { kind: 'caller', name: 'ci' } as const
  const intake = anIntake({ state: 'draining', by, reason: 'kernel', deadlineAt: 5, onDeadline: 'cancel', epoch: 9 })
  const runner = aRunner({
    intake,
    unready: [{ check: 'disk', message: 'only 3 MiB are free' }],
    quarantine: { since: 1, until: 2, reason: 'no bundle' },
    isolation: { level: 'bubblewrap', user: 'agent', cgroup: false, network: 'none' },
    copyRefusedAt: 7,
  })
  const { url } = await startFake(t, { 'runners.get': () => ({ runner }) })
  const { stdout } = await runCli(['runners', 'get', runner.id], { url })
  assert.match(stdout, /^intake +draining since .* by ci, deadline .*, then cancel, epoch 9: kernel$/m)
  assert.match(stdout, /^quarantine +until .*: no bundle$/m)
  assert.match(stdout, /^unready +disk: only 3 MiB are free$/m)
  assert.match(stdout, /^isolation +bubblewrap, the agent's user, no cgroups, no network$/m)
  assert.match(stdout, /^copy refused /m)
})

test('cordon, resume, revoke and deregister say what counts from now on', async (t) => {
  const runner = aRunner()
  const answer = (state: 'open' | 'cordoned' | 'revoked') => () => ({
    runner: { ...runner, intake: anIntake({ state, epoch: 4 }) },
  })
  const { url, asked } = await startFake(t, {
    'runners.cordon': answer('cordoned'),
    'runners.resume': answer('open'),
    'runners.revoke': answer('revoked'),
    'runners.deregister': () => ({}),
  })
  const said = async (...args: string[]) => (await runCli(['runners', ...args], { url })).stdout
  assert.equal(await said('cordon', runner.id, '--reason', 'slow', '--epoch', '3'), 'build-1 is cordoned (epoch 4)\n')
  assert.equal(await said('resume', runner.id), 'build-1 takes work (epoch 4)\n')
  // Nobody is there to be asked.
  assert.equal(await said('revoke', runner.id), 'build-1 is revoked (epoch 4)\n')
  assert.equal(await said('deregister', runner.id, '--force', '--yes'), `${runner.id} is forgotten\n`)
  assert.deepEqual(
    asked.map(({ args }) => args),
    [
      { runner: runner.id, reason: 'slow', epoch: 3 },
      { runner: runner.id, reason: '' },
      { runner: runner.id, reason: '' },
      { runner: runner.id, force: true },
    ],
  )
})
