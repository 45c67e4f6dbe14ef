import type { Log } from '@windlass/shared/log.ts'
import { createSample } from '../limits/sample.ts'
import type { AgentSocket } from './agent-socket.ts'

/**
 * Limits what agents were sent and have not taken: the bytes of one org, and those of all. Over a limit the connection
 * for which most lies here is cut; its agent comes back, and is told what it needs again. Those that take what they
 * are sent have less and less here, so they come to their end; cutting the slowest would begin it anew for everybody.
 */
export interface UnreadFrames {
  /** Notes how many bytes lie here for this connection now; 0 when it has taken all, or is gone. */
  note(orgId: string, socket: AgentSocket, bytes: number): void
}

interface UnreadFramesOptions {
  log?: Log
  org?: number
  all?: number
}

interface OrgSockets {
  bytes: number
  sockets: Map<AgentSocket, number>
}

const MIB = 1024 * 1024

/** The results that wake a program have 8 Mi characters at most; the socket itself takes 64 MiB. */
export function createUnreadFrames({
  log,
  org: mostOfOrg = 96 * MIB,
  all: most = 256 * MIB,
}: UnreadFramesOptions = {}): UnreadFrames {
  const orgs = new Map<string, OrgSockets>()
  const sample = createSample()
  let total = 0

  function set(orgId: string, socket: AgentSocket, bytes: number): OrgSockets {
    const org = orgs.get(orgId) ?? { bytes: 0, sockets: new Map<AgentSocket, number>() }
    const more = bytes - (org.sockets.get(socket) ?? 0)
    org.bytes += more
    total += more
    if (bytes > 0) org.sockets.set(socket, bytes)
    else org.sockets.delete(socket)
    if (org.sockets.size > 0) orgs.set(orgId, org)
    else orgs.delete(orgId)
    return org
  }

  const isTooMuch = () => total > most

  function cutFullest(orgId: string, { sockets }: OrgSockets, limitBytes: number) {
    const [socket, bytes] = fullest(sockets, (each) => each)!
    set(orgId, socket, 0)
    const facts = sample(orgId)
    const message = `Agents leave more than ${limitBytes} bytes unread; the connection with most of them was cut.`
    if (facts) log?.warn('agent.unread.cut', { orgId, bytes, limitBytes, message, ...facts })
    socket.cut()
  }

  return {
    note(orgId, socket, bytes) {
      const org = set(orgId, socket, bytes)
      while (org.bytes > mostOfOrg) cutFullest(orgId, org, mostOfOrg)
      while (isTooMuch()) cutFullest(...fullest(orgs, (each) => each.bytes)!, most)
    },
  }
}

function fullest<K, V>(all: ReadonlyMap<K, V>, bytesOf: (value: V) => number): [K, V] | undefined {
  let most: [K, V] | undefined
  for (const each of all) if (!most || bytesOf(each[1]) > bytesOf(most[1])) most = each
  return most
}
