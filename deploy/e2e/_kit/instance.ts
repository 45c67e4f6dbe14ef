import assert from 'node:assert/strict'
import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Client, createClient } from 'windlass/client'
import { endLeftovers, leftovers, processesMarked } from '../../tools/leftovers.ts'
import { ENDED_MS, watchStart, type Watched, type WatchOptions } from './start-process.ts'
import { DEADLINE_MS, until } from './until.ts'

export interface Access {
  url: string
  org: string
  apiKey: string
}

export type PartName = 'coordinator' | 'agent' | 'postgres'

/** A running installation: the process of `npm start` and everything it started. */
export interface Instance {
  home: string
  access: Access
  client: Client
  process: Watched
  /** The process of a part, or nothing while it is not there. */
  pidOf(part: PartName): Promise<number | undefined>
  /** SIGTERM, the exit code, and the assertion that nothing is left of it. */
  stop(): Promise<void>
}

export interface InstanceOptions extends WatchOptions {
  home: string
}

/** Tests look far more often than anybody who has a limit. */
const UNLIMITED = {
  WINDLASS_LIMIT_IDENTITY_PER_MIN: '0',
  WINDLASS_LIMIT_ORG_PER_MIN: '0',
  WINDLASS_LIMIT_REFUSED_PER_MIN: '0',
  WINDLASS_LIMIT_WAITING: '0',
  WINDLASS_LIMIT_ORG_WAITING: '0',
}

const ENTRIES = { coordinator: 'coordinator/main.ts', agent: 'agent/main.ts' }

/** Starts one and waits for the line that says it serves. */
export async function startInstance({ home, ...options }: InstanceOptions): Promise<Instance> {
  const env = { WINDLASS_PORT: '0', ...UNLIMITED, ...options.env, WINDLASS_HOME: home }
  const started = watchStart({ ...options, env })
  try {
    const access = await until('the line on stdout', () => readLine(started), {
      ms: ENDED_MS,
      more: () => started.stderr().slice(-3000),
    })
    return {
      home,
      access,
      client: createClient(access),
      process: started,
      pidOf: (part) => pidOf(started.pid, home, part),
      stop: () => stopInstance(home, started),
    }
  } catch (error) {
    endLeftovers(processesMarked(home))
    throw error
  }
}

function readLine(started: Watched): Access | undefined {
  const line = started.stdout()
  if (line.endsWith('\n')) return JSON.parse(line) as Access
  if (started.child.exitCode === null && started.child.signalCode === null) return undefined
  throw new Error(`npm start ended before it served:\n${started.stderr().slice(-3000)}`)
}

async function stopInstance(home: string, started: Watched): Promise<void> {
  started.child.kill('SIGTERM')
  assert.equal(await started.ended(), 0, started.stderr().slice(-3000))
  await nothingIsLeft(home)
}

/**
 * No process has this home in its environment, command line or working folder. PostgreSQL's sessions notice the death
 * of their server a moment later.
 */
export async function nothingIsLeft(home: string): Promise<void> {
  const left = await leftovers(home, DEADLINE_MS)
  assert.deepEqual(
    left.map(({ pid, command }) => `${pid} ${command.slice(0, 200)}`),
    [],
  )
}

async function pidOf(starter: number, home: string, part: PartName): Promise<number | undefined> {
  if (part === 'postgres') return postmasterOf(home)
  const parts = processesMarked(home).filter(({ command }) => command.includes(ENTRIES[part]))
  // An agent that somebody else has started in the same home is none of its parts. One whose starter is dead has a new
  // parent.
  return (parts.find(({ pid }) => parentOf(pid) === starter) ?? parts[0])?.pid
}

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

async function postmasterOf(home: string): Promise<number | undefined> {
  try {
    const pid = Number((await readFile(join(home, 'postgres/data/postmaster.pid'), 'utf8')).split('\n')[0])
    return processesMarked(join(home, 'postgres')).some((each) => each.pid === pid) ? pid : undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * A folder for an instance. `remove` ends first what still belongs to it, so that a failed test leaves nothing either.
 */
export function makeHome(user?: { uid: number; gid: number }): { home: string; remove(): void } {
  const home = mkdtempSync(join(tmpdir(), 'windlass-e2e-'))
  if (user) chownSync(home, user.uid, user.gid)
  return {
    home,
    remove() {
      endLeftovers(processesMarked(home))
      rmSync(home, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
