// What is handed out to be used elsewhere, held against the tools that will read it there. Each is skipped where its tool is missing.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import { EXIT, FINAL_CODES } from '@windlass/agent/exit-codes.ts'
import { LOCKS } from '@windlass/agent/isolation/uid-lock.ts'
import { Settings as AgentSettings } from '@windlass/agent/settings.ts'
import { installScript } from '@windlass/coordinator/downloads/install-script.ts'
import { Settings as CoordinatorSettings } from '@windlass/coordinator/settings.ts'
import { parse, parseAllDocuments } from 'yaml'
import { PROJECT } from '../tools/source-files.ts'

const run = promisify(execFile)
const DEADLINE_MS = 30_000
const RELEASE = 'install/release-cgroup.sh'
const SCRIPTS = ['install/install.sh', 'install/uninstall.sh', RELEASE, 'install/windlass'].map(inDeploy)
const PART = inDeploy('install/undo.sh')
const UNITS = { system: 'windlass-agent.service', user: 'windlass-agent.user.service' } as const
/** Of 10; what systemd counts against a service. It is measured without the reasons that stand in the unit. */
const MOST_EXPOSED = 5.1

const folder = mkdtempSync(join(tmpdir(), 'windlass-install-files-'))
after(() => rmSync(folder, { recursive: true }))

function inDeploy(path: string): string {
  return join(PROJECT, 'deploy', path)
}

function textOf(path: string): string {
  return readFileSync(inDeploy(path), 'utf8')
}

function without(tool: string): string | false {
  const folders = (process.env['PATH'] ?? '').split(':')
  return folders.some((each) => existsSync(join(each, tool))) ? false : `${tool} is not installed`
}

test('shellcheck finds nothing in the scripts', { skip: without('shellcheck') }, async () => {
  await run('shellcheck', ['-ax', '-P', 'SCRIPTDIR', '--shell=sh', ...SCRIPTS], { timeout: DEADLINE_MS })
})

for (const [shell, ...args] of [['dash'], ['busybox', 'sh']] as const) {
  test(`${shell} can read the scripts`, { skip: without(shell) }, async () => {
    for (const script of [...SCRIPTS, PART]) await run(shell, [...args, '-n', script], { timeout: DEADLINE_MS })
  })
}

test('the script does nothing before its last line has come', async () => {
  const lines = (await installScript('https://one.example', '1.0.0')).trimEnd().split('\n')
  assert.equal(lines.pop(), 'main "$@"')
  const top = lines.filter((line) => /^[^\s#}]/.test(line) && !/^\w+\(\) [{(]|^USAGE$|^SUMMARY$|^[A-Z_]+=/.test(line))
  // Texts of more than one line begin anywhere; a command would be one of these.
  assert.deepEqual(
    top.filter((line) => /^(curl|wget|rm|mkdir|tar|mv|ln|sed|systemctl|fetch|install)\b/.test(line)),
    [],
  )
})

/** A unit as the script writes it, with a program that is there. */
function written(kind: keyof typeof UNITS): string {
  const path = join(folder, kind, 'windlass-agent.service')
  mkdirSync(join(folder, kind), { recursive: true })
  const text = textOf(`systemd/${UNITS[kind]}`)
    .replaceAll('@DIR@/current/bin/windlass', '/bin/true')
    .replaceAll('@DIR@/current/release-cgroup.sh', '/bin/true')
    .replaceAll('@CONFIG@', '/etc/windlass-agent/agent.env')
    .replaceAll('@STATE@', '/var/lib')
  assert.doesNotMatch(text, /@[A-Z]+@/)
  writeFileSync(path, text)
  return path
}

const withoutSystemd = without('systemd-analyze')

test('systemd can read the units', { skip: withoutSystemd }, async () => {
  const env = { ...process.env, XDG_RUNTIME_DIR: folder, HOME: folder }
  for (const kind of ['system', 'user'] as const) {
    const args = ['verify', ...(kind === 'user' ? ['--user'] : []), written(kind)]
    const { stderr } = await run('systemd-analyze', args, { env, timeout: DEADLINE_MS })
    // systemd before 254 does not know it, and goes on.
    const found = stderr.split('\n').filter((line) => !/Unknown key( name)? 'DelegateSubgroup'/.test(line))
    assert.doesNotMatch(found.join('\n'), /windlass-agent\.service/)
  }
})

test('the unit of the system is as closed as an agent can be', { skip: withoutSystemd }, async () => {
  const threshold = String(MOST_EXPOSED * 10)
  const args = ['security', '--offline=yes', '--no-pager', `--threshold=${threshold}`, written('system')]
  await run('systemd-analyze', args, { timeout: DEADLINE_MS })
})

test('the units leave to bubblewrap what it needs', () => {
  const hostile =
    /^(ProtectHostname|ProtectKernelTunables|ProtectKernelLogs|ProtectProc|ProcSubset|RestrictNamespaces|PrivateUsers)=/m
  for (const unit of Object.values(UNITS)) assert.doesNotMatch(textOf(`systemd/${unit}`), hostile)
})

test('the units start nothing anew that has ended for good, and drain before a restart', () => {
  for (const unit of Object.values(UNITS)) {
    const setting = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(textOf(`systemd/${unit}`))?.[1]
    assert.deepEqual(setting('RestartPreventExitStatus')?.split(' ').map(Number), FINAL_CODES)
    assert.ok(!FINAL_CODES.includes(EXIT.internal))
    assert.equal(setting('KillSignal'), 'SIGTERM')
    assert.equal(setting('KillMode'), 'process')
    assert.equal(setting('TimeoutStopSec'), '16min')
  }
})

test('a killed agent can start again beside its programs, in a group of its own', () => {
  for (const unit of Object.values(UNITS)) {
    const text = textOf(`systemd/${unit}`)
    assert.match(text, /^Delegate=yes$/m)
    // As agent/isolation/cgroup-folder.ts calls the group into which the agent would move itself.
    assert.match(text, /^DelegateSubgroup=agent$/m)
    assert.match(text, /^ExecStopPost=-@DIR@\/current\/release-cgroup\.sh$/m)
  }
})

/** By the agent, and by a program that has made groups of its own. */
const HANDED_ON = { unit: 'cpu memory pids\n', runs: 'memory\n', program: 'memory\n', own: 'pids\n', idle: '\n' }

/** What the script writes in the group of a service that has ended, under a systemd of this version. */
async function released(t: TestContext, systemd: string): Promise<Record<string, string>> {
  const root = mkdtempSync(join(folder, 'released-'))
  t.after(() => rmSync(root, { recursive: true }))
  const unit = join(root, 'system.slice/windlass-agent.service')
  const runs = join(unit, 'windlass-runs-0')
  const files = { unit, runs, program: `${runs}/one`, own: `${runs}/one/.b${'/a'.repeat(1100)}`, idle: `${runs}/idle` }
  for (const each of Object.values(files)) mkdirSync(each, { recursive: true })
  // Nobody can write there, nor into the groups of a program that works against us.
  mkdirSync(join(runs, 'first'))
  symlinkSync('/proc/version', join(runs, 'first/cgroup.subtree_control'))
  for (const [name, text] of Object.entries(HANDED_ON))
    writeFileSync(join(files[name as keyof typeof files], 'cgroup.subtree_control'), text)
  writeFileSync(join(root, 'own'), '1:name=systemd:/elsewhere\n0::/system.slice/windlass-agent.service/.control\n')
  writeFileSync(join(root, 'systemctl'), `#!/bin/sh\necho 'systemd ${systemd} (${systemd}.1-1~deb)'\necho +PAM\n`, {
    mode: 0o755,
  })
  const env = { ...process.env, PATH: `${root}:${process.env['PATH']}` }
  await run('sh', [inDeploy(RELEASE), root, join(root, 'own')], { env, timeout: DEADLINE_MS })
  return Object.fromEntries(
    Object.entries(files).map(([name, each]) => [name, readFileSync(join(each, 'cgroup.subtree_control'), 'utf8')]),
  )
}

test('before systemd 254 the group of a killed agent is made free for the next one, and no other', async (t) => {
  // The last of what was written to each file, which is no cgroup's here.
  const free = { unit: '-pids', runs: '-memory', program: '-memory', own: '-pids', idle: '\n' }
  assert.deepEqual(await released(t, '252'), free)
  assert.deepEqual(await released(t, '254'), HANDED_ON)
})

const COORDINATOR = 'systemd/windlass-coordinator.service'

test('systemd can read the unit of the coordinator', { skip: withoutSystemd }, async () => {
  const path = join(folder, 'windlass-coordinator.service')
  const text = textOf(COORDINATOR).replace('@DIR@/node_modules/.bin/node', '/bin/true').replaceAll('@DIR@', folder)
  writeFileSync(path, text.replaceAll('@CONFIG@', '/etc/windlass/coordinator.env'))
  const { stderr } = await run('systemd-analyze', ['verify', path], { timeout: DEADLINE_MS })
  assert.doesNotMatch(stderr, /windlass-coordinator\.service/)
})

test('the end of a process by the kernel, for want of memory, stops no service', () => {
  for (const unit of [COORDINATOR, ...Object.values(UNITS).map((each) => `systemd/${each}`)])
    assert.match(textOf(unit), /^OOMPolicy=continue$/m)
})

test('on one machine the agent stops before its coordinator, and that before its database', () => {
  assert.match(textOf(`systemd/${UNITS.system}`), /^After=.*\bwindlass-coordinator\.service\b/m)
  assert.match(textOf(COORDINATOR), /^After=.*\bpostgresql\.service\b/m)
})

test('whoever installs an agent for himself is told how it gets its time at a reboot', () => {
  const wanted = /systemctl edit\s+user@\$\(id -u\)[^]*TimeoutStopSec=16min/
  for (const path of ['docs/fleet.md', 'install/install.sh']) assert.match(textOf(path), wanted)
})

test('the coordinator has a home where its dynamic user is in no file of users', () => {
  const text = textOf(COORDINATOR)
  assert.match(text, /^DynamicUser=yes$/m)
  assert.match(text, /^Environment=HOME=\/var\/lib\/windlass$/m)
})

interface Manifest {
  kind: string
  metadata: { name: string; namespace: string }
  spec: Record<string, unknown>
}

interface Pod {
  terminationGracePeriodSeconds: number
  securityContext: Record<string, unknown>
  containers: {
    env: { name: string; value?: string; valueFrom?: { secretKeyRef?: { optional?: boolean } } }[]
    securityContext: { allowPrivilegeEscalation: boolean; capabilities: { drop: string[]; add: string[] } }
    livenessProbe: { httpGet: { path: string; port: string } }
    readinessProbe: { httpGet: { path: string; port: string } }
    ports: { name: string; containerPort: number }[]
    volumeMounts: { name: string; mountPath: string }[]
  }[]
}

function kubernetes(): Manifest[] {
  return parseAllDocuments(textOf('kubernetes/agent.yaml')).map((document) => {
    assert.deepEqual(document.errors, [])
    return document.toJS() as Manifest
  })
}

test('on Kubernetes an agent keeps its identity, drains before it ends, and has few powers of root', () => {
  const all = kubernetes()
  assert.deepEqual(
    all.map(({ kind }) => kind),
    ['StatefulSet', 'Service', 'PodDisruptionBudget', 'NetworkPolicy'],
  )
  assert.equal(new Set(all.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)).size, 1)
  const set = all[0]?.spec as { template: { spec: Pod }; volumeClaimTemplates: { metadata: { name: string } }[] }
  const pod = set.template.spec
  const [agent] = pod.containers
  assert.ok(agent)
  const env = new Map(agent.env.map((each) => [each.name, each]))
  for (const name of env.keys()) assert.ok(Object.hasOwn(AgentSettings.shape, name), name)
  const stopMs = Number(env.get('WINDLASS_AGENT_STOP_MS')?.value)
  // Programs have up to five minutes of grace after it.
  assert.ok(pod.terminationGracePeriodSeconds * 1000 >= stopMs + 300_000)
  assert.equal(env.get('WINDLASS_AGENT_TOKEN')?.valueFrom?.secretKeyRef?.optional, true)
  // Only root can give runs users of their own, and needs no more for it than the unit of the system has.
  assert.equal(pod.securityContext['runAsUser'], 0)
  const { drop, add } = agent.securityContext.capabilities
  assert.deepEqual(drop, ['ALL'])
  assert.match(textOf('systemd/windlass-agent.service'), /^SystemCallFilter=~.*@keyring/m)
  const unit = /^CapabilityBoundingSet=(.*)$/m.exec(textOf('systemd/windlass-agent.service'))![1]!.split(' ')
  for (const power of add) assert.ok(unit.includes(`CAP_${power}`), power)
  assert.ok(agent.volumeMounts.some(({ mountPath }) => mountPath === LOCKS))
  assert.equal(agent.securityContext.allowPrivilegeEscalation, false)
  assert.equal(agent.livenessProbe.httpGet.path, '/livez')
  assert.equal(agent.readinessProbe.httpGet.path, '/readyz')
  const port = agent.ports.find(({ name }) => name === agent.readinessProbe.httpGet.port)?.containerPort
  assert.equal(env.get('WINDLASS_AGENT_HEALTH')?.value, `0.0.0.0:${port}`)
  const claims = set.volumeClaimTemplates.map(({ metadata }) => metadata.name)
  const state = agent.volumeMounts.find(({ mountPath }) => mountPath === '/var/lib/windlass-agent')
  assert.ok(state && claims.includes(state.name))
})

test('the container of an agent has an init, gives runs own users, says how it is, and names real settings', () => {
  const text = textOf('docker/agent.Dockerfile')
  const last = text.slice(text.lastIndexOf('\nFROM '))
  assert.match(last, /^ENTRYPOINT \["\/usr\/bin\/tini", "--"/m)
  assert.doesNotMatch(last, /^USER /m)
  // A container with `--user 10001` needs a folder of that user.
  assert.match(last, /install -d -o 10001 -g 10001 -m 0711 \/var\/lib\/windlass-agent$/m)
  const advised = text.slice(0, text.indexOf('\nFROM ')).matchAll(/--cap-add (\w+)/g)
  assert.deepEqual(
    Array.from(advised, ([, power]) => power),
    powers(),
  )
  assert.match(last, /install -y --no-install-recommends .*\bbubblewrap\b.*\butil-linux\b/)
  assert.match(last, /^HEALTHCHECK [^]*\/readyz/m)
  assert.match(text, /sha256sum --check/)
  for (const [name] of text.matchAll(/WINDLASS_AGENT_[A-Z]+/g))
    assert.ok(Object.hasOwn(AgentSettings.shape, name), name)
  // It is served as it is: what it copies must come from the coordinator.
  assert.doesNotMatch(text, /^(COPY|ADD) (?!--from)/m)
})

interface Service {
  environment: Record<string, unknown>
  stop_grace_period?: string
  cap_drop?: string[]
  cap_add?: string[]
}

function composed(): Record<string, Service> {
  return (parse(textOf('docker/compose.yaml')) as { services: Record<string, Service> }).services
}

/** The powers of root that an agent on Kubernetes has. */
function powers(): string[] {
  const { template } = kubernetes()[0]!.spec as { template: { spec: Pod } }
  return template.spec.containers[0]!.securityContext.capabilities.add
}

test('under compose an agent has the powers of root by which runs get users of their own, and no others', () => {
  const { cap_drop: dropped, cap_add: added } = composed()['agent']!
  assert.deepEqual(dropped, ['ALL'])
  assert.deepEqual(added, powers())
})

test('compose knows the settings, and gives an agent the time to drain', () => {
  const services = composed()
  const known = { ...CoordinatorSettings.shape, ...AgentSettings.shape }
  for (const part of ['coordinator', 'agent'] as const)
    for (const name of Object.keys(services[part]?.environment ?? {})) assert.ok(Object.hasOwn(known, name), name)
  assert.equal(services['agent']?.stop_grace_period, '16m')
})
