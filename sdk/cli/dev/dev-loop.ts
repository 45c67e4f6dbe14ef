import type { Channel } from '@windlass/shared/model/event.ts'
import { isFinal } from '@windlass/shared/model/run.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { ApiError } from '../../client/index.ts'
import { begun } from '../begun.ts'
import type { Deployed } from '../commands/deploy.ts'
import { reportOf } from '../failure.ts'
import { tellRun } from '../follow-run.ts'
import { jsonArgument } from '../json-argument.ts'
import type { Session } from '../session.ts'
import { behindBar, lengthText, note, paint, print } from '../terminal.ts'
import { Deployer } from './deployer.ts'
import type { Deployment } from './deployer.ts'
import { watchFolder } from './watch-folder.ts'
import type { FolderWatch } from './watch-folder.ts'

export interface DevWishes {
  folder: string
  /** Nothing: only deploy. The input as it was typed, so that `@file` is read anew for each run. */
  run: { input: string | undefined; environment: string | undefined } | undefined
  channels: Channel[]
  /** Whether a save cancels the run that an earlier one has started. */
  restart: boolean
}

/** Deploys at every save and runs what was deployed, until the signal. */
export class DevLoop {
  private readonly session: Session
  private readonly wishes: DevWishes
  private readonly deployer: Deployer
  private warnings = ''
  private current: { run: Run; stop: AbortController } | undefined

  constructor(session: Session, wishes: DevWishes) {
    this.session = session
    this.wishes = wishes
    this.deployer = new Deployer(session, wishes.folder)
  }

  /** The run that goes on when we end. */
  get running(): Run | undefined {
    return this.current?.run
  }

  async forever(): Promise<never> {
    const watch = await watchFolder(this.wishes.folder)
    try {
      await this.begin(watch)
      for (;;) {
        await watch.next()
        await this.turn(watch)
      }
    } finally {
      watch.close()
    }
  }

  private async begin(watch: FolderWatch): Promise<void> {
    const deployed = await this.deployer.asDeployed()
    if (!deployed) return this.turn(watch)
    const { workflow } = deployed
    this.say(`${workflow.slug}, version ${workflow.version}, is deployed as it is here; watching`, { deployed })
    if (this.wishes.run) await this.start(deployed)
  }

  private async turn(watch: FolderWatch): Promise<void> {
    const deployed = await this.deployer.deploy(watch.news)
    if (!deployed) return
    this.tellDeployed(deployed)
    // A newer save is deployed first: nobody wants to see the older one run.
    if (this.wishes.run && !watch.news.aborted) await this.start(deployed)
  }

  private tellDeployed({ workflow, version, packed, tookMs, isNew }: Deployment): void {
    const warnings = [...packed.warnings, ...version.warnings]
    const isOther = warnings.join('\n') !== this.warnings
    this.warnings = warnings.join('\n')
    if (isOther && !this.session.isJson)
      for (const warning of warnings)
        this.session.progress.note(paint('yellow', behindBar(`warning: ${warning}`, process.stderr)))
    const took = isNew ? `in ${lengthText(tookMs)}` : 'as before'
    this.say(`${paint('green', '✔')} ${workflow.slug}, version ${version.version}, ${took}`, {
      deployed: { workflow, version },
    })
  }

  /** Starts a run of what is deployed; what refuses it is told, and the next save tries again. */
  private async start({ workflow, version }: Deployed): Promise<void> {
    this.leave()
    try {
      const { input, environment } = this.wishes.run ?? {}
      const { run } = await this.session.client.runs.trigger({
        workflow: workflow.slug,
        version: version.version,
        ...(input !== undefined && { input: await jsonArgument('--input', input) }),
        ...(environment !== undefined && { environment }),
      })
      this.follow(run)
    } catch (error) {
      this.tellTrouble(isUnknown(error) ? begun(error, PERHAPS_STARTED) : error)
    }
  }

  private follow(run: Run): void {
    const stop = new AbortController()
    if (!this.session.isJson) this.session.progress.note(paint('dim', `── ${run.id}`))
    const following = tellRun(this.session, run, { channels: this.wishes.channels }, stop.signal)
    following.then(
      () => this.ended(run),
      (error: unknown) => {
        if (!stop.signal.aborted) this.tellTrouble(error)
      },
    )
    this.current = { run, stop }
  }

  private ended(run: Run): void {
    if (this.current?.run.id === run.id) this.current = undefined
  }

  /** Turns away from the run of an earlier save. */
  private leave(): void {
    const before = this.current
    if (!before) return
    this.current = undefined
    before.stop.abort()
    if (!this.wishes.restart) return this.say(paint('dim', `${before.run.id} goes on by itself`))
    // Its end is not waited for: the new code is what one wants to see.
    const { id } = before.run
    this.session.client.runs
      .cancel({ run: id, reason: 'a newer save in windlass dev' })
      .then(({ run }) => isFinal(run.status) || this.say(paint('dim', `${run.id} is ${run.status}`)))
      .catch((error: unknown) => {
        // It had ended by itself, just before.
        if (codeOf(error) === 'RUN_ALREADY_FINISHED') return
        const what = isUnknown(error) ? `Whether ${id} is cancelled is not known` : `${id} was not cancelled`
        this.tellTrouble(begun(error, { what, next: `windlass runs cancel ${id}`, detail: { run: id } }))
      })
  }

  private say(text: string, facts?: Record<string, unknown>): void {
    if (!this.session.isJson) this.session.progress.note(text)
    else if (facts) print(JSON.stringify(facts))
  }

  private tellTrouble(error: unknown): void {
    const { message, next, envelope } = reportOf(error, 'dev')
    const hint = next?.replace('again: windlass dev', 'save again')
    if (this.session.isJson) note(JSON.stringify(envelope))
    else {
      const what = behindBar(message, process.stderr)
      this.session.progress.note(`${paint('red', '✖')} ${what}${hint ? `\n  Next: ${hint}` : ''}`)
    }
  }
}

const PERHAPS_STARTED = {
  what: 'Whether a run was started is not known',
  next: 'windlass runs list shows it; the next save starts one',
  detail: {},
}

const isUnknown = (error: unknown) => error instanceof ApiError && error.mayBeDone

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
