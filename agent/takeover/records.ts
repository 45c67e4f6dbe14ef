import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { RunLimits } from '@windlass/shared/model/pool.ts'
import { EffectiveIsolation } from '@windlass/shared/model/runner.ts'
import { Offer } from '@windlass/shared/wire/agent.ts'
import { z } from 'zod'
import { folderMark } from '../os/folder-mark.ts'
import { bootId, isAlive, markOf, readOrNothing, sinceBootMs, type ProcessMark } from '../os/process-id.ts'
import { signal } from '../os/end-processes.ts'

/** What the next agent needs in order to take a program back, if this one is killed while it executes. */
export const ProgramRecord = z.object({
  boot: z.string(),
  /** Mark of the folder in which this record was made. In a copy of it stand the programs of the original. */
  folder: z.string(),
  process: z.object({ pid: z.int(), started: z.string() }),
  marker: z.string(),
  /** The user that it executes as, where that is not the agent's. */
  uid: z.int().optional(),
  workspace: z.string(),
  /** Folder of its cgroup. */
  cgroup: z.string().optional(),
  /** Name of the pipes that are its descriptors 1 and 2. */
  rawPipes: z.string(),
  /** Name of the folder of its runtime, from which it may load more. Agents of before did not write it down. */
  runtime: z.string().optional(),
  key: z.string(),
  effective: EffectiveIsolation,
  limits: RunLimits,
  /** Without what its secrets were: the program itself says that. */
  offer: Offer,
  /** What these have in all: it cannot say more. Agents of before did not write it down. */
  secretBytes: z.int().optional(),
  /** Since when it computes, by the clock that runs from the machine's start, in milliseconds; null while it does not. */
  computesFromMs: z.number().nullable(),
  /** What was left then of the time that it may compute. */
  leftMs: z.number(),
})
export type ProgramRecord = z.output<typeof ProgramRecord>

/** By the clock that runs from the machine's start, in milliseconds. */
const Lease = z.object({ fromMs: z.number(), fenceMs: z.number() })
export type Lease = z.output<typeof Lease>
/** A lease in its file. Files of earlier versions have no `boot` and are ignored. */
const SavedLease = Lease.extend({ boot: z.string() })

/** A copy of its folder names the reaper of the original, and the programs that are to go on there. */
const SavedProcess = z.object({ pid: z.int(), started: z.string(), boot: z.string(), folder: z.string() })

/** What tells whether a lease that was written down still holds. */
interface Machine {
  /** Milliseconds since its start, including sleep. */
  sinceBootMs(): number
  /** Name of this start; empty where the machine has none. */
  boot(): string
}

/** One file a program, in a folder that nobody else can read, and one that says until when the leases hold. */
export interface Records {
  /** Where a program and the next agent find each other. It is the program's to enter, and has no names in it but pipes. */
  rendezvous(marker: string): string
  keep(record: Omit<ProgramRecord, 'boot' | 'folder'>): void
  forget(marker: string): void
  /**
   * The first process of a pid namespace, with which all in there ends. No program there is taken back, and it may have
   * left nothing else by which the next agent could find it.
   */
  keepInit(marker: string, init: ProcessMark): void
  forgetInit(marker: string): void
  /** What ends the programs when nobody comes. */
  reaperIs(pid: number): void
  /** Leases hold from there for so long: then all programs have to be dead, unless this is said again. */
  leaseFrom(lease: Lease): void
}

const LEASE_FILE = 'lease'
const REAPER_FILE = 'reaper'
const ENDS_WITH = '.json'
const INIT_ENDS_WITH = '.init'
const PRIVATE = 0o600

const THIS_MACHINE: Machine = { sinceBootMs, boot: bootId }

export function openRecords(folder: string, machine = THIS_MACHINE): Records {
  mkdirSync(folder, { recursive: true, mode: 0o711 })
  const here = { boot: machine.boot(), folder: folderMark(folder) }
  const fileOf = (marker: string) => path.join(folder, `${marker}${ENDS_WITH}`)
  const initFileOf = (marker: string) => path.join(folder, `${marker}${INIT_ENDS_WITH}`)

  function write(file: string, text: string): void {
    writeFileSync(`${file}.new`, text, { mode: PRIVATE })
    renameSync(`${file}.new`, file)
  }

  return {
    rendezvous: (marker) => path.join(folder, marker),
    keep: (record) => write(fileOf(record.marker), JSON.stringify({ ...record, ...here } satisfies ProgramRecord)),
    forget(marker) {
      rmSync(fileOf(marker), { force: true })
      rmSync(path.join(folder, marker), { recursive: true, force: true })
    },
    keepInit(marker, init) {
      try {
        write(initFileOf(marker), JSON.stringify({ ...init, ...here }))
      } catch {
        // The disk is full. The reaper knows of it too.
      }
    },
    forgetInit(marker) {
      try {
        rmSync(initFileOf(marker), { force: true })
      } catch {
        // The next agent finds no such process any more.
      }
    },
    reaperIs(pid) {
      try {
        const mark = markOf(pid)
        write(path.join(folder, REAPER_FILE), JSON.stringify(mark ? { ...mark, ...here } : null))
      } catch {
        // The disk is full. Unknown to the next agent, it ends what it guards with its lease, and the runs begin anew.
      }
    },
    leaseFrom: (lease) => write(path.join(folder, LEASE_FILE), JSON.stringify({ ...lease, boot: here.boot })),
  }
}

export interface Found {
  programs: ProgramRecord[]
  /** What the coordinator had last promised the agent before this one. Undefined where that is over. */
  lease: Lease | undefined
  /** They are another reaper's from now on. */
  endReaper(): void
}

/**
 * Programs of an earlier agent that are still there and whose leases hold. Everything else that is recorded is removed. None where
 * the machine cannot tell one boot or process from another, or where the folder is a copy of theirs.
 */
export function findPrograms(folder: string, machine = THIS_MACHINE): Found {
  const here = { boot: machine.boot(), folder: folderMark(folder) }
  const lease = leaseIn(folder, machine)
  const all = recorded(folder)
  const programs = all.filter((record) => lease && isOf(record, here) && isThere(record.process))
  for (const { marker } of all.filter((record) => !programs.includes(record))) openRecords(folder).forget(marker)
  const { data: reaper } = SavedProcess.safeParse(parse(readOrNothing(path.join(folder, REAPER_FILE)) ?? ''))
  const endReaper = () => {
    if (reaper && isOf(reaper, here) && isThere(reaper)) signal(-reaper.pid, 'SIGKILL')
  }
  return { programs, lease, endReaper }
}

/** Undefined where it is over, or where nobody can tell: of another boot, or by a clock of which boots have no name. */
function leaseIn(folder: string, machine: Machine): Lease | undefined {
  const { data: said } = SavedLease.safeParse(parse(readOrNothing(path.join(folder, LEASE_FILE)) ?? ''))
  if (!said || said.boot === '' || said.boot !== machine.boot()) return undefined
  const { fromMs, fenceMs } = said
  const sinceMs = machine.sinceBootMs() - fromMs
  return sinceMs >= 0 && sinceMs < fenceMs ? { fromMs, fenceMs } : undefined
}

/** First processes of pid namespaces that an earlier agent has left. Each is forgotten when it has ended. */
export function findInits(folder: string, machine = THIS_MACHINE): { init: ProcessMark; forget: () => void }[] {
  const here = { boot: machine.boot(), folder: folderMark(folder) }
  return namesIn(folder, INIT_ENDS_WITH).flatMap((name) => {
    const file = path.join(folder, name)
    const forget = () => rmSync(file, { force: true })
    const { data: saved } = SavedProcess.safeParse(parse(readOrNothing(file) ?? ''))
    if (saved && isOf(saved, here)) return [{ init: { pid: saved.pid, started: saved.started }, forget }]
    forget()
    return []
  })
}

function namesIn(folder: string, ending: string): string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith(ending))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

function recorded(folder: string): ProgramRecord[] {
  return namesIn(folder, ENDS_WITH).flatMap((name) => {
    const file = path.join(folder, name)
    const parsed = ProgramRecord.safeParse(parse(readFileSync(file, 'utf8')))
    if (parsed.success) return [parsed.data]
    // Cut short, or of another version: the program that it stood for is killed with all others of that agent.
    rmSync(file, { force: true })
    return []
  })
}

type Origin = Pick<ProgramRecord, 'boot' | 'folder'>

function isOf({ boot, folder }: Origin, here: Origin): boolean {
  return boot !== '' && boot === here.boot && folder === here.folder
}

function isThere(mark: ProgramRecord['process']): boolean {
  return mark.started !== '' && isAlive(mark)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
