import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomUUID } from 'node:crypto'

/** A network of hosts in namespaces of their own, behind a bridge in ours. */
export interface Lan {
  /** Ours, by which the hosts reach what listens here. */
  address: string
  addHost(name: string): NetHost
  /** Ends what still runs on the hosts and takes everything down. */
  remove(): void
}

/** How much of each direction is lost, in percent; 100 is a cut that nobody is told of. */
export interface Loss {
  toHost: number
  fromHost: number
}

export interface NetHost {
  name: string
  address: string
  /** What stands before a command that this host is to execute. */
  prefix(): string[]
  loses(loss: Loss): void
  /** Both directions have so many kbit/s; undefined: all there is. */
  hasRate(kbit: number | undefined): void
  pids(): number[]
  /** Kills every process. What it starts next sees another boot. */
  reboot(): void
}

const PREFIX = 'wlf'
/** A host's own identity, where the kernel gives all of them the same. `ip netns exec` has made a mount namespace for it. */
const ENTER =
  'mount --bind "$1" /proc/sys/kernel/random/boot_id; [ ! -e /etc/machine-id ] || mount --bind "$2" /etc/machine-id; shift 2; exec "$@"'

function sh(command: string): string {
  const [file, ...args] = command.split(' ')
  return execFileSync(file!, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

/** Why there can be no such hosts here; nothing where there can. */
export function noHosts(): string | undefined {
  if (process.platform !== 'linux') return 'network namespaces are Linux’s'
  if (process.getuid?.() !== 0) return 'only root makes network namespaces'
  const probe = `${PREFIX}${process.pid}-probe`
  try {
    removeAbandoned()
    sh(`ip netns add ${probe}`)
    sh(`ip netns exec ${probe} nft list ruleset`)
    sh('tc -V')
    return undefined
  } catch (error) {
    return `hosts need ip and tc of iproute2, nft of nftables, and the right to make namespaces: ${firstLine(error)}`
  } finally {
    quietly(`ip netns del ${probe}`)
  }
}

function firstLine(error: unknown): string {
  return (error as Error).message.trim().split('\n').slice(0, 2).join(' ')
}

function quietly(command: string): void {
  try {
    sh(command)
  } catch {
    // It may not be there, or not any more.
  }
}

/** `folder` keeps what tells the hosts apart. */
export function makeLan(folder: string): Lan {
  const id = `${PREFIX}${process.pid}`
  const bridge = `${id}b`
  const net = freeNet()
  const hosts: { host: NetHost; ns: string }[] = []
  sh(`ip link add ${bridge} type bridge`)
  sh(`ip addr add ${net}.1/24 dev ${bridge}`)
  sh(`ip link set ${bridge} up`)
  return {
    address: `${net}.1`,
    addHost(name) {
      const number = hosts.length + 1
      const at = { ns: `${id}-${number}`, device: `${id}h${number}`, bridge, address: `${net}.${10 + number}` }
      const host = makeHost(name, at, folder)
      hosts.push({ host, ns: at.ns })
      return host
    },
    remove() {
      for (const { host, ns } of hosts) {
        host.reboot()
        quietly(`nft delete table netdev ${ns}`)
        quietly(`ip netns del ${ns}`)
      }
      quietly(`ip link del ${bridge}`)
    },
  }
}

/** One that no card of this machine is in. */
function freeNet(): string {
  const taken = sh('ip -4 -o addr')
  for (;;) {
    const [a, b] = randomBytes(2)
    const net = `10.${a}.${b}`
    if (!taken.includes(`${net}.`)) return net
  }
}

interface Address {
  ns: string
  /** Its card's other end, on the bridge. */
  device: string
  bridge: string
  address: string
}

const CARD = 'eth0'

function makeHost(name: string, { ns, device, bridge, address }: Address, folder: string): NetHost {
  sh(`ip netns add ${ns}`)
  sh(`ip link add ${device} type veth peer name ${CARD} netns ${ns}`)
  sh(`ip link set ${device} master ${bridge}`)
  sh(`ip link set ${device} up`)
  const inside = (command: string) => sh(`ip netns exec ${ns} ${command}`)
  inside('ip link set lo up')
  inside(`ip addr add ${address}/24 dev ${CARD}`)
  inside(`ip link set ${CARD} up`)
  const namespace = inside('readlink /proc/self/ns/net').trim()
  const identity = join(folder, `${name}-identity`)
  mkdirSync(identity, { recursive: true })
  const [boot, machine] = [join(identity, 'boot_id'), join(identity, 'machine-id')]
  writeFileSync(machine, `${randomUUID().replaceAll('-', '')}\n`)
  const startOver = () => writeFileSync(boot, `${randomUUID()}\n`)
  startOver()
  const pids = () => processesIn(namespace)
  return {
    name,
    address,
    prefix: () => ['ip', 'netns', 'exec', ns, 'sh', '-c', ENTER, 'sh', boot, machine],
    loses({ toHost, fromHost }) {
      drop(ns, CARD, toHost, `ip netns exec ${ns} nft`)
      drop(ns, device, fromHost, 'nft')
    },
    hasRate(kbit) {
      for (const [dev, run] of [
        [CARD, inside],
        [device, sh],
      ] as const) {
        if (kbit === undefined) quietly(`${run === sh ? '' : `ip netns exec ${ns} `}tc qdisc del dev ${dev} root`)
        else run(`tc qdisc replace dev ${dev} root tbf rate ${kbit}kbit burst 8kb latency 500ms`)
      }
    },
    pids,
    reboot() {
      // What is being started while they are killed is found on the next look.
      for (let found = pids(); found.length > 0; found = pids()) found.forEach(kill)
      startOver()
    },
  }
}

/** Packets that come in at a card are lost before anybody sees them. */
function drop(table: string, device: string, percent: number, nft: string): void {
  quietly(`${nft} delete table netdev ${table}`)
  if (percent === 0) return
  sh(`${nft} add table netdev ${table}`)
  const [file, ...args] = nft.split(' ')
  const run = (text: string) => execFileSync(file!, [...args, text], { stdio: 'pipe' })
  run(`add chain netdev ${table} lossy { type filter hook ingress device ${device} priority 0 ; }`)
  run(`add rule netdev ${table} lossy ${percent >= 100 ? '' : `numgen random mod 100 < ${percent} `}drop`)
}

function processesIn(namespace: string): number[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
  return all.filter((pid) => namespaceOf(pid) === namespace).map(Number)
}

/** The net namespace of a process; nothing when it is gone. */
function namespaceOf(pid: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`)
  } catch {
    // It has ended, or is being started.
    return undefined
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** A test that was killed could not take its network down: what its number belongs to is dead. */
function removeAbandoned(): void {
  const names = sh('ip -o link').match(new RegExp(`${PREFIX}\\d+b`, 'g')) ?? []
  const owners = new Set(names.map((name) => Number(name.slice(PREFIX.length, -1))))
  for (const owner of owners) {
    if (existsSync(`/proc/${owner}`)) continue
    for (const ns of sh('ip netns list').match(new RegExp(`^${PREFIX}${owner}-\\d+`, 'gm')) ?? []) {
      for (const pid of sh(`ip netns pids ${ns}`).split('\n').filter(Boolean)) kill(Number(pid))
      quietly(`nft delete table netdev ${ns}`)
      quietly(`ip netns del ${ns}`)
    }
    quietly(`ip link del ${PREFIX}${owner}b`)
  }
}
