import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Client } from 'windlass/client'
import { type Cluster, type ClusterOptions, startCluster } from './cluster.ts'
import { type FleetHost, type HostOptions, startHost } from './hosts.ts'
import { makeHome } from './instance.ts'
import { type Lan, makeLan } from './netns.ts'
import { deploy, programFiles } from './runs.ts'

/** A coordinator and hosts with addresses of their own, all of one pool, and the program `fleet`. */
export interface Fleet {
  cluster: Cluster
  client: Client
  hosts: readonly FleetHost[]
  /** One more, of the same pool. */
  addHost(host: Wanted): Promise<FleetHost>
  /** For the ledgers of programs. */
  folder: string
  stop(): Promise<void>
}

type Wanted = Omit<HostOptions, 'pool'>

export interface FleetOptions extends Pick<ClusterOptions, 'env' | 'coordinators'> {
  hosts: readonly Wanted[]
  /** By their slugs: whether each run has a process of its own. */
  workflows: Record<string, 'fresh' | 'reuse'>
  /** How often a run may crash. */
  crashes?: number
}

const POOL = 'hosts'

export async function startFleet({ hosts: wanted, workflows, crashes = 50, ...options }: FleetOptions): Promise<Fleet> {
  const temp = makeHome()
  const folder = join(temp.home, 'ledgers')
  mkdirSync(folder)
  const lan = makeLan(temp.home)
  const hosts: FleetHost[] = []
  let cluster: Cluster | undefined
  const stop = async () => {
    try {
      await Promise.all(hosts.map((host) => host.remove()))
      await cluster?.stop()
    } finally {
      takeDown(lan, temp)
    }
  }
  try {
    const started = (cluster = await startCluster({ ...options, home: temp.home, host: lan.address }))
    const addHost = async (host: Wanted) => {
      const added = await startHost(started, lan, { ...host, pool: POOL })
      hosts.push(added)
      return added
    }
    for (const host of wanted) await addHost(host)
    for (const [slug, process] of Object.entries(workflows)) {
      const descriptor = { slug, process, pool: POOL, timeout: '10m', retries: { crash: crashes } }
      await deploy(started.client, programFiles('fleet', descriptor))
    }
    return { cluster: started, client: started.client, hosts, addHost, folder, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

function takeDown(lan: Lan, temp: { remove(): void }): void {
  try {
    lan.remove()
  } finally {
    temp.remove()
  }
}
