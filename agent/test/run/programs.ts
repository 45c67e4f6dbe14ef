import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { TestContext } from 'node:test'
import { build } from 'esbuild'
import { z } from 'zod'
import type { Ending } from '@windlass/shared/model/ending.ts'
import type { HostIsolation } from '../../isolation/plan.ts'
import { hostIsolation, ISOLATION_SETTINGS } from '../../isolation/settings.ts'
import { programEnvironment } from '../../os/environment.ts'
import { createProcesses, type Processes, type ProcessesOptions } from '../../run/hosts/processes.ts'
import type { ProgramEvent } from '../../run/program/output.ts'
import { NO_JOURNAL } from '../../run/program/recorded-journal.ts'
import type { ProgramStart } from '../../run/program/program.ts'
import { giveRuntime } from '../_kit/runtime.ts'

const PROGRAMS = path.resolve(import.meta.dirname, '../programs')

export interface Stage {
  home: string
  processes: Processes
  /** Bundles a program of `test/programs` the way a deploy does. */
  bundle(name: string): Promise<string>
  start(name: string, more?: Partial<ProgramStart>): Promise<ProgramStart>
  /** Runs a program to its end. */
  play(name: string, more?: Partial<ProgramStart>): Promise<{ ending: Ending; events: ProgramEvent[] }>
}

/** Real processes in a folder of their own, all gone when the test is. */
export async function aStage(t: TestContext, options: Partial<ProcessesOptions> = {}): Promise<Stage> {
  const home = await fs.mkdtemp(path.join(os.tmpdir(), 'windlass-run-'))
  await giveRuntime(home)
  const environment = programEnvironment(process.env)
  const isolation = isolationOfTests()
  const processes = await createProcesses({ home, environment, spares: 0, isolation, ...options })
  t.after(async () => {
    await processes.close()
    await fs.rm(home, { recursive: true, force: true })
  })
  const bundle = (name: string) => bundleInto(path.join(home, 'bundles', name), name)
  const start = async (name: string, more: Partial<ProgramStart> = {}) => ({ ...aStart(await bundle(name)), ...more })
  return {
    home,
    processes,
    bundle,
    start,
    play: async (name, more) => {
      const events: ProgramEvent[] = []
      const program = processes.run(await start(name, more), (batch) => void events.push(...batch))
      return { ending: await program.done, events }
    },
  }
}

/** The same programs as elsewhere, under what these name: WINDLASS_AGENT_ISOLATION, WINDLASS_AGENT_RUN_UIDS. */
export function isolationOfTests(): HostIsolation {
  const names = ['WINDLASS_AGENT_ISOLATION', 'WINDLASS_AGENT_RUN_UIDS']
  const given = names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : []))
  const wanted = hostIsolation(z.object(ISOLATION_SETTINGS).parse(Object.fromEntries(given)))
  return { ...wanted, uids: wanted.uids === 'auto' ? null : wanted.uids }
}

export function aStart(bundleDir: string): ProgramStart {
  return {
    runId: 'run_test',
    attempt: 1,
    epoch: 1,
    org: 'acme',
    workflow: { slug: 'demo', version: 3 },
    environment: null,
    inputText: '{}',
    bundleDir,
    variables: {},
    token: 'a-token',
    journal: NO_JOURNAL,
    entries: 0,
    forgotten: 0,
    replay: false,
    timeoutMs: 15_000,
    graceMs: 1_000,
    process: 'fresh',
    reuseKey: 'acme/demo/3/',
  }
}

export async function bundleInto(folder: string, name: string): Promise<string> {
  await build({
    entryPoints: [path.join(PROGRAMS, name)],
    outfile: path.join(folder, 'main.mjs'),
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    external: ['windlass'],
    sourcemap: 'external',
    logLevel: 'silent',
  })
  return folder
}

export const texts = (events: ProgramEvent[]) => events.map(({ data }) => textOf(data))

function textOf(data: unknown): string {
  assert.ok(typeof data === 'object' && data !== null)
  return String('text' in data ? data.text : 'name' in data ? data.name : '')
}

/** Alive and more than a zombie. */
export async function isAlive(pid: number): Promise<boolean> {
  const stat = await fs.readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '')
  return stat !== '' && !/^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2))
}
