import { ADDRCONFIG, type LookupAddress, promises } from 'node:dns'
import type { LookupFunction, Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '@windlass/shared/log.ts'

/**
 * The addresses of the database's host, looked up once for all connections that wait for them. Node has two threads for
 * look-ups by the system. Were each of some 34 connections to look for itself with a DNS that takes 3 s, the last had
 * its answer after 51 s; each would give up before its turn, and wait behind more of them the next time.
 */
export interface Addresses {
  /** For `connect` of this socket. */
  lookupFor(socket: Socket, log: Log): LookupFunction
}

export interface AddressesOptions {
  lookup?: (host: string) => Promise<LookupAddress[]>
  /** How long an answer serves others. A failover by DNS is seen so much later. */
  freshMs?: number
  /** How long an answer is waited for. Then the addresses of the last one are tried, until it is there. */
  patienceMs?: number
  /** Pause between look-ups that fail, while connections have addresses of before. */
  againMs?: number
}

interface Name {
  host: string
  /** Of the last answer. */
  addresses: readonly LookupAddress[]
  /** When it came. */
  at: number
  flight: Flight | undefined
  /** Sockets that got the addresses of the last answer while another one was waited for. */
  guesses: Set<Guess>
  isFollowed: boolean
}

interface Flight {
  answer: Promise<readonly LookupAddress[]>
  /** The answer, or undefined when it takes long. */
  soon: Promise<readonly LookupAddress[] | undefined>
}

interface Guess {
  socket: Socket
  addresses: readonly LookupAddress[]
}

/** As a socket looks for itself: addresses of both families where the machine has both. */
const lookUp = (host: string) => promises.lookup(host, { all: true, hints: ADDRCONFIG })

export function createAddresses(options: AddressesOptions = {}): Addresses {
  const { lookup = lookUp, freshMs = 2000, patienceMs = 1000, againMs = 2000 } = options
  /** As many as there are hosts of databases. */
  const names = new Map<string, Name>()

  function nameOf(host: string): Name {
    const found = names.get(host)
    if (found) return found
    const name = { host, addresses: [], at: 0, flight: undefined, guesses: new Set<Guess>(), isFollowed: false }
    names.set(host, name)
    return name
  }

  function fly(name: Name): Flight {
    const answer = look(name)
    const soon = Promise.race([answer, delay(patienceMs, undefined, { ref: false })])
    // Others may wait for the one only, or for nothing any more.
    answer.catch(() => undefined)
    soon.catch(() => undefined)
    return { answer, soon }
  }

  async function look(name: Name): Promise<readonly LookupAddress[]> {
    try {
      name.addresses = await lookup(name.host)
      name.at = performance.now()
      endWrongGuesses(name)
      return name.addresses
    } catch (error) {
      if (hasNoSuchName(error)) name.addresses = []
      throw error
    } finally {
      name.flight = undefined
    }
  }

  /** Looks until there is an answer, or no connection of the last one. */
  async function follow(name: Name): Promise<void> {
    if (name.isFollowed) return
    name.isFollowed = true
    while (name.guesses.size > 0) {
      const { answer } = (name.flight ??= fly(name))
      await answer.catch(() => delay(againMs, undefined, { ref: false }))
      for (const guess of name.guesses) if (guess.socket.destroyed) name.guesses.delete(guess)
    }
    name.isFollowed = false
  }

  async function find(name: Name, socket: Socket, log: Log): Promise<readonly LookupAddress[]> {
    const last = name.addresses
    if (last.length > 0 && performance.now() - name.at < freshMs) return last
    const flight = (name.flight ??= fly(name))
    if (last.length === 0) return flight.answer
    const answer = await flight.soon.catch((error: unknown) => {
      if (hasNoSuchName(error)) throw error
      return undefined
    })
    if (answer) return answer
    if (name.guesses.size === 0) log.warn('database.host.unanswered', { host: name.host, tries: last.length })
    name.guesses.add({ socket, addresses: last })
    void follow(name)
    return last
  }

  return {
    lookupFor:
      (socket, log) =>
      (host, { all }, done) => {
        find(nameOf(host), socket, log).then(
          (found) =>
            all
              ? process.nextTick(done, null, [...found])
              : process.nextTick(done, null, found[0]!.address, found[0]!.family),
          (error: unknown) => process.nextTick(done, ownError(error)),
        )
      },
  }
}

/** After a failover the host of before may be there still, and take no writes. */
function endWrongGuesses({ addresses, guesses }: Name): void {
  const known = new Set(addresses.map(({ address }) => address))
  for (const { socket, addresses: tried } of guesses) {
    const isRight = socket.remoteAddress
      ? known.has(socket.remoteAddress)
      : tried.some(({ address }) => known.has(address))
    if (!isRight) socket.destroy()
  }
  guesses.clear()
}

/** DNS has answered, and knows no addresses: those of before may be another's by now. */
function hasNoSuchName(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOTFOUND'
}

/** The drivers write into errors which statement they refused. */
function ownError(error: unknown): Error {
  return error instanceof Error ? Object.assign(new Error(error.message), error) : new Error(String(error))
}
