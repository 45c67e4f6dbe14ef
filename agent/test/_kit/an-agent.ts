import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { Log } from '@windlass/shared/log.ts'
import { createLog } from '@windlass/shared/log.ts'
import { testRunVariables } from '@windlass/shared/test/_kit/test-run.ts'
import { announce, until } from '@windlass/shared/test/_kit/until.ts'
import { readConfig } from '../../config.ts'
import type { Paces } from '../../paces.ts'
import { startAgent } from '../../start.ts'
import type { Agent } from '../../start.ts'
import { REGISTRATION_TOKEN } from './fake-coordinator.ts'
import { QUICK } from './quick.ts'
import { giveRuntime } from './runtime.ts'

export async function aFolder(): Promise<{ folder: string; remove: () => Promise<void> }> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'windlass-agent-'))
  await giveRuntime(folder)
  return { folder, remove: () => rm(folder, { recursive: true, force: true, maxRetries: 3 }) }
}

/** Lines that an agent logs, taken apart. */
export interface Logged {
  lines: { name: string; level: string; [fact: string]: unknown }[]
  log: Log
}

export function aLog(): Logged {
  const lines: Logged['lines'] = []
  const write = (line: string) => {
    lines.push(JSON.parse(line))
    announce()
  }
  const log = createLog({}, 'debug', { write })
  return { lines, log }
}

/** An agent in this process. */
export async function anAgent(
  url: string,
  home: string,
  more: Record<string, string> = {},
  paces: Partial<Paces> = {},
): Promise<Agent & Logged> {
  const logged = aLog()
  const config = { ...readConfig(envOf(url, home, more)), paces: { ...QUICK, ...paces } }
  const agent = await startAgent(config, { log: logged.log })
  return { ...agent, ...logged }
}

export interface AgentProcess {
  child: ChildProcess
  /** Everything on stderr so far. */
  output(): string
  kill(signal: NodeJS.Signals): Promise<number | null>
}

const started = new Set<ChildProcess>()

/** Whatever a test that failed has left running. */
export async function endAgentProcesses(): Promise<void> {
  const alive = [...started].filter((child) => !hasEnded(child))
  started.clear()
  await Promise.all(alive.map((child) => ended(child)))
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null

async function ended(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}

/** An agent as a process of its own, which has logged `said`, or has started. */
export async function anAgentProcess(
  url: string,
  home: string,
  more: Record<string, string> = {},
  said = 'agent.started',
): Promise<AgentProcess> {
  const env = { PATH: process.env.PATH, ...testRunVariables(), ...envOf(url, home, more) }
  const main = path.join(import.meta.dirname, 'quick-agent.ts')
  const child = spawn(process.execPath, [main], { env, stdio: ['ignore', 'inherit', 'pipe'] })
  started.add(child)
  let output = ''
  child.stderr.on('data', (chunk: Buffer) => {
    output += chunk.toString()
    announce()
  })
  const exited = once(child, 'exit')
  child.once('exit', announce)
  const kill = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    const [code] = (await exited) as [number | null]
    return code
  }
  await until(
    `the start of an agent: ${output}`,
    () => output.includes(said) || output.includes('agent.started') || hasEnded(child),
  )
  return { child, output: () => output, kill }
}

function envOf(url: string, home: string, more: Record<string, string>) {
  // Of an agent that is installed on this machine; and what programs of tests write to is root's.
  const usual = { WINDLASS_AGENT_CONFIG: 'none', WINDLASS_AGENT_RUN_UIDS: 'off', ...isolationOfTests() }
  const own = { WINDLASS_URL: url, WINDLASS_AGENT_HOME: home, WINDLASS_AGENT_TOKEN: REGISTRATION_TOKEN }
  return {
    ...own,
    WINDLASS_AGENT_SLOTS: '4',
    WINDLASS_AGENT_SPARES: '1',
    WINDLASS_AGENT_STOP_MS: '500',
    ...usual,
    ...more,
  }
}

/** The same tests in bubblewrap, where whoever starts them says so. */
function isolationOfTests(): Record<string, string> {
  const { WINDLASS_AGENT_ISOLATION } = process.env
  return WINDLASS_AGENT_ISOLATION === undefined ? {} : { WINDLASS_AGENT_ISOLATION }
}
