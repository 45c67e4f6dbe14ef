import type { DrainPlan, Runner } from '@windlass/shared/model/runner.ts'
import { ApiError } from '../../client/index.ts'
import type { Session } from '../session.ts'
import { lengthText, note, print, safe } from '../terminal.ts'

// A log without a sign of life for longer looks stuck.
const REPEAT_MS = 30_000
const ANSWER_MS = 10_000

/** The run that has been going for longest: mostly the one that all wait for. */
interface Oldest {
  run: string
  workflow: string
  since: number
}

/**
 * What a drain still waits for: one line that is rewritten on a terminal, a line for each change elsewhere, and lines
 * of JSON with `--json`.
 */
export class DrainProgress {
  private readonly session: Session
  private readonly signal: AbortSignal
  private shown = ''
  private shownAt = 0
  private oldest: Oldest | undefined

  constructor(session: Session, signal: AbortSignal) {
    this.session = session
    this.signal = signal
  }

  async tell(runner: Runner, leftMs: number): Promise<void> {
    if (this.session.isJson) return this.tellJson(runner)
    const counts = countsText(runner.live)
    const isNews = counts !== this.shown
    const isDue = isNews || performance.now() - this.shownAt >= REPEAT_MS
    if (isDue) {
      this.shown = counts
      this.shownAt = performance.now()
      this.oldest = await this.findOldest(runner)
    }
    const end = leftMs > 0 ? `${lengthText(leftMs)} to the deadline` : 'what is left is being cancelled'
    const line = `${safe(runner.name, process.stderr)}: ${counts} left, ${end}${this.oldestText()}`
    if (process.stderr.isTTY) this.session.progress.update(line)
    else if (isDue) note(line)
  }

  /** It cannot be asked for now, and is asked again. */
  away({ name }: Runner): void {
    const line = `${safe(name, process.stderr)}: the coordinator does not answer, asking again`
    if (process.stderr.isTTY) this.session.progress.update(line)
    else if (!this.session.isJson && this.shown !== line) note(line)
    this.shown = line
  }

  private tellJson({ id, intake, live }: Runner): void {
    const { epoch, state, deadlineAt } = intake
    const line = JSON.stringify({ runner: id, epoch, state, live, deadlineAt })
    if (line !== this.shown) print(line)
    this.shown = line
  }

  /** The line serves without it as well. */
  private async findOldest({ id }: Runner): Promise<Oldest | undefined> {
    try {
      const options = { signal: this.signal, deadlineMs: ANSWER_MS }
      const { plan } = await this.session.client.runners.plan({ runner: id }, options)
      return oldestOf(plan)
    } catch (error) {
      this.signal.throwIfAborted()
      if (error instanceof ApiError) return undefined
      throw error
    }
  }

  private oldestText(): string {
    if (!this.oldest) return ''
    const { run, workflow, since } = this.oldest
    const forMs = Math.max(0, Date.now() - since)
    return `; oldest ${run} (${safe(workflow, process.stderr)}) for ${lengthText(forMs)}`
  }
}

export function countsText({ executing, parked, offered }: Runner['live']): string {
  return `${executing} executing, ${parked} parked, ${offered} offered`
}

function oldestOf({ live }: DrainPlan): Oldest | undefined {
  const executing = live.flatMap(({ run, workflow, since, outcome }) =>
    since === null || outcome !== 'finishes' ? [] : [{ run, workflow, since }],
  )
  return executing.sort((a, b) => a.since - b.since)[0]
}
