import { accessSync, constants, statSync } from 'node:fs'
import type { Stats } from 'node:fs'
import path from 'node:path'
import type { Log } from '@windlass/shared/log.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import type { AgentRun } from '../run/agent-run.ts'
import { runHook } from './run-hook.ts'

/** Programs of the host's owner, who has a say in what this machine does. Whatever keeps one from being asked counts as its no. */
export interface Hooks {
  /** What is wrong with the hooks themselves. */
  trouble(): string | undefined
  /** Whether the machine is to take work now; answers why not. */
  preClaim(): Promise<string | undefined>
  /** Before each process of a run; answers why it is to be put off. */
  preRun(agentRun: AgentRun): Promise<string | undefined>
  /** After each process of a run, however it ended. Nobody waits for it but the end of the agent. */
  postRun(agentRun: AgentRun, ending: Ending): void
  /** Nobody wants to know any more whether work may be taken; what comes after a run is executed to its end. */
  close(): Promise<void>
}

interface HookOptions {
  /** Undefined: there are none. */
  folder: string | undefined
  deadlineMs: number
  /** What they find in their environment, besides what the call is about. */
  environment: Record<string, string>
  log: Log
}

const NAMES = ['pre-claim', 'pre-run', 'post-run'] as const
type HookName = (typeof NAMES)[number]

export function createHooks(options: HookOptions): Hooks {
  const { folder, log } = options
  const closing = new AbortController()
  const ending = new Set<Promise<unknown>>()

  async function call(name: HookName, facts: object, more: { agentRun?: AgentRun } = {}): Promise<string | undefined> {
    if (folder === undefined) return undefined
    const file = path.join(folder, name)
    const trouble = troubleOf(folder, name)
    if (trouble !== undefined) return trouble
    if (!statOrNothing(file)) return undefined
    const env = { ...options.environment, WINDLASS_HOOK: name, ...(more.agentRun && variablesOf(more.agentRun)) }
    const signal = name === 'post-run' ? undefined : (more.agentRun?.unwanted ?? closing.signal)
    return runHook({
      name,
      file,
      cwd: folder,
      facts: { hook: name, ...facts },
      env,
      signal,
      deadlineMs: options.deadlineMs,
      log,
    })
  }

  return {
    trouble() {
      if (folder === undefined) return undefined
      return NAMES.map((name) => troubleOf(folder, name)).find((found) => found !== undefined)
    },
    preClaim: () => call('pre-claim', {}),
    preRun: (agentRun) => call('pre-run', factsOf(agentRun), { agentRun }),
    postRun(agentRun, how) {
      if (folder === undefined) return
      const done = call('post-run', { ...factsOf(agentRun), ending: withoutPayload(how) }, { agentRun })
      const logged = done.catch((error: unknown) => log.error('hook.broken', { hook: 'post-run', error }))
      ending.add(logged)
      void logged.finally(() => ending.delete(logged))
    },
    async close() {
      closing.abort()
      await Promise.all(ending)
    },
  }
}

/** Neither input nor variables nor tokens: the hook is the host's, and the run is its org's. */
function factsOf({ offer }: AgentRun) {
  const { run, attempt, epoch, org, workflow, environment, replay } = offer
  return { run, attempt, epoch, org, workflow, environment, replay }
}

function variablesOf({ offer }: AgentRun): Record<string, string> {
  return {
    WINDLASS_RUN_ID: offer.run,
    WINDLASS_RUN_ATTEMPT: String(offer.attempt),
    WINDLASS_ORG: offer.org,
    WINDLASS_WORKFLOW: offer.workflow.slug,
    WINDLASS_ENVIRONMENT: offer.environment ?? '',
  }
}

function withoutPayload(ending: Ending): object {
  if (ending.how === 'returned') return { how: ending.how }
  if (ending.how === 'threw') return { how: ending.how, error: { name: ending.error.name, code: ending.error.code } }
  return ending.how === 'blocked' ? { how: ending.how } : ending
}

/** Whoever may write there could have programs executed by the agent. */
function troubleOf(folder: string, name: HookName): string | undefined {
  const found = statOrNothing(folder)
  if (!found?.isDirectory()) return `WINDLASS_AGENT_HOOKS: ${folder} is no folder. Make it, or take the setting out.`
  const file = path.join(folder, name)
  const stat = statOrNothing(file)
  if (!stat) return openTo(folder, found)
  return openTo(folder, found) ?? openTo(file, stat) ?? (isExecutable(file, stat) ? undefined : notExecutable(file))
}

const OTHERS_WRITE = 0o022

function openTo(file: string, stat: Stats): string | undefined {
  const mine = process.getuid?.() ?? stat.uid
  if (stat.uid !== 0 && stat.uid !== mine)
    return `${file} belongs to user ${stat.uid}, and hooks are taken from root and the user of the agent only: chown it.`
  if ((stat.mode & OTHERS_WRITE) === 0) return undefined
  return `${file} can be written by others than its owner, so that it is not executed: chmod go-w it.`
}

function isExecutable(file: string, stat: Stats): boolean {
  try {
    accessSync(file, constants.X_OK)
    return stat.isFile()
  } catch {
    // Whatever forbids it: it cannot be executed.
    return false
  }
}

const notExecutable = (file: string) => `${file} is no program that can be executed: chmod u+x it, or remove it.`

function statOrNothing(file: string): Stats | undefined {
  return statSync(file, { throwIfNoEntry: false })
}
