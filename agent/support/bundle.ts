import { open, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { pack } from 'tar-stream'
import { PROTOCOL } from '@windlass/shared/wire/agent.ts'
import { resolveSettings } from '../config.ts'
import { examineAgent } from '../doctor/doctor.ts'
import { VERSION } from '../version.ts'
import { daemonOf, readOr } from './daemon.ts'
import { figuresOf } from './folders.ts'
import type { Located } from './located.ts'
import { lastLines } from './log-file.ts'
import { lastOfJournal, logSource } from './log-source.ts'
import type { LogSource } from './log-source.ts'
import { masked } from './mask.ts'
import { becomeOwner } from './owner.ts'
import { processesOf } from './processes.ts'

const LOG_LINES = 5_000

/** One file of a bundle, with what stands in it in words. */
export interface Piece {
  name: string
  about: string
  text: string
}

/** Everything that helps somebody who cannot look at this machine, and nothing that would let them in or tell what runs worked on. */
export async function gather(located: Located, signal: AbortSignal): Promise<Piece[]> {
  const { config, settingsFile } = located
  const source = logSource(config.logFile)
  // Which its user may have no right to read.
  const journal = source.kind === 'journal' ? lastOfJournal(source.args, LOG_LINES) : undefined
  becomeOwner({ settingsFile, home: config.home })
  const daemon = daemonOf(config.home)
  const folders = ['spool', 'bundles', 'workspaces', 'runtime'] as const
  const figures = await Promise.all(folders.map(async (name) => [name, await figuresOf(path.join(config.home, name))]))
  const findings = await examineAgent({ located, isSlow: false, signal })
  const processes = daemon.state === 'running' ? processesOf(daemon.pid) : []
  const pieces: Piece[] = [
    { name: 'about.json', about: 'versions, the machine, whether the agent runs', text: json(about(daemon)) },
    {
      name: 'settings.json',
      about: 'every setting and who says it, without the token',
      text: json({ settingsFile: settingsFile ?? null, settings: resolveSettings(config) }),
    },
    { name: 'doctor.json', about: 'what `windlass agent doctor` says', text: json({ findings }) },
    { name: 'status.json', about: 'what the agent wrote down last about itself', text: statusText(config.home) },
    {
      name: 'folders.json',
      about: 'how much lies in its folders, no names and no contents',
      text: json(Object.fromEntries(figures)),
    },
    { name: 'processes.json', about: 'its processes, without their command lines', text: json(processes) },
    { name: 'agent.log', about: `the last ${LOG_LINES} lines of its log`, text: await logText(source, journal) },
  ]
  return pieces.map((piece) => ({ ...piece, text: masked(piece.text) }))
}

const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`

function about(daemon: ReturnType<typeof daemonOf>) {
  return {
    madeAt: new Date().toISOString(),
    agent: { version: VERSION, protocol: PROTOCOL, daemon },
    node: process.version,
    host: {
      platform: `${process.platform}-${process.arch}`,
      kernel: `${os.type()} ${os.release()}`,
      system: systemName(),
      cores: os.availableParallelism(),
      memoryBytes: os.totalmem(),
      freeMemoryBytes: os.freemem(),
      load: os.loadavg(),
      upSeconds: Math.round(os.uptime()),
    },
  }
}

function systemName(): string {
  const release = readOr('/etc/os-release')
  return (typeof release === 'object' && /^PRETTY_NAME="?(.*?)"?$/m.exec(release.text)?.[1]) || 'unknown'
}

function statusText(home: string): string {
  const status = readOr(path.join(home, 'status.json'))
  return typeof status === 'object' ? status.text : json({ status: status ?? 'none was written' })
}

async function logText(source: LogSource, journal: string | undefined): Promise<string> {
  if (source.kind === 'none') return `${source.message}\n`
  if (source.kind === 'journal') return journal ?? 'The journal could not be read.\n'
  const lines = await lastLines(source.file, { count: LOG_LINES })
  return lines.map((line) => `${line}\n`).join('')
}

export interface Bundle {
  write(pieces: readonly Piece[]): Promise<void>
  /** Removes the file, where we still may. */
  giveUp(): Promise<void>
}

/** Readable by whoever made it alone, and never over another file. */
export async function openBundle(file: string): Promise<Bundle> {
  const folder = path.basename(file).replace(/\.(tgz|tar\.gz)$/, '')
  const handle = await open(file, 'wx', 0o600)
  const giveUp = async () => {
    await handle.close()
    await rm(file, { force: true }).catch(() => undefined)
  }
  return {
    async write(pieces) {
      const tar = pack()
      try {
        for (const { name, text } of pieces) tar.entry({ name: `${folder}/${name}`, mode: 0o600 }, text)
        tar.finalize()
        await pipeline(tar, createGzip(), handle.createWriteStream())
      } catch (error) {
        await giveUp()
        throw error
      }
    },
    giveUp,
  }
}
