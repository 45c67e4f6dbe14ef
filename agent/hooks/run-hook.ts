import type { Readable } from 'node:stream'
import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import { atMost, pause } from '@windlass/shared/time.ts'
import { signal as sendSignal } from '../os/end-processes.ts'
import { createLineSplitter } from '../run/program/lines.ts'
import { launch } from '../os/process.ts'
import type { Launched } from '../os/process.ts'
import { masked } from '../support/mask.ts'

export interface HookCall {
  name: string
  file: string
  cwd: string
  /** Becomes JSON on its stdin. */
  facts: object
  env: Record<string, string>
  deadlineMs: number
  /** Fires when nobody wants its answer any more: it is killed. */
  signal?: AbortSignal | undefined
  log: Log
}

const MOST_LINES = 100
const LINE_CHARS = 1_000
/** For the last lines of one that has ended, which children may keep open. */
const LAST_LINES_MS = 500

/** Answers nothing when it has ended well, else why not: its last line, where it has said something. */
export async function runHook(call: HookCall): Promise<string | undefined> {
  const { file, cwd, env, deadlineMs, log, name } = call
  const child = launch({ file, args: [], cwd, env, morePipes: 0, stdin: 'pipe' })
  // It need not read what it is given.
  child.stdin?.on('error', () => {})
  child.stdin?.end(`${JSON.stringify(call.facts)}\n`)
  const heard = listen(child, call)
  const over = new AbortController()
  const late = pause(deadlineMs, call.signal ? AbortSignal.any([call.signal, over.signal]) : over.signal)
  const exit = await Promise.race([child.exited, late.then(() => undefined)])
  over.abort()
  if (exit === undefined && child.pid !== undefined) sendSignal(-child.pid, 'SIGKILL')
  await atMost(LAST_LINES_MS, heard.all)
  // Its children too, but not before they had time for its last lines.
  if (child.pid !== undefined) sendSignal(-child.pid, 'SIGKILL')
  child.stdout.destroy()
  child.stderr.destroy()
  const cut = call.signal?.aborted ? 'nobody waits for it any more' : `it took more than ${deadlineMs} ms`
  const trouble = exit === undefined ? cut : troubleOf(exit, heard.last())
  probe('hook.ended', { name, isYes: trouble === undefined })
  if (trouble !== undefined) log.warn('hook.failed', { hook: name, reason: trouble })
  return trouble && `the hook ${name} of this host says no: ${trouble}`
}

function troubleOf(exit: Awaited<Launched['exited']>, last: string): string | undefined {
  if ('failed' in exit) return exit.failed
  if (exit.exitCode === 0) return undefined
  return last || (exit.signal ? `it was ended by ${exit.signal}` : `exit code ${exit.exitCode}`)
}

/** What it says goes into the log of the agent, and its last line to the coordinator: a script that shows what it does shows credentials too. */
function listen(child: Launched, { log, name, facts }: HookCall) {
  const { run } = facts as { run?: string }
  let last = ''
  let count = 0
  const hear = (line: string) => {
    const text = masked(line.slice(0, LINE_CHARS))
    if (text.trim() !== '') last = text.trim()
    if (count++ < MOST_LINES) log('hook.said', { hook: name, ...(run && { run }), text })
  }
  const each = async (stream: Readable) => {
    const lines = createLineSplitter()
    for await (const chunk of stream) lines.push(chunk as Buffer).forEach(hear)
    lines.flush().forEach(hear)
  }
  const all = Promise.allSettled([each(child.stdout), each(child.stderr)])
  return { all, last: () => last }
}
