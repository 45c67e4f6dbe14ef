import { createHash } from 'node:crypto'
import { backoffMs, pause } from '@windlass/shared/time.ts'
import { ApiError } from '../../client/index.ts'
import { isPassing } from '../../client/patience.ts'
import { createOrUpdate, packFolder } from '../commands/deploy.ts'
import type { Deployed, Package } from '../commands/deploy.ts'
import { reportOf } from '../failure.ts'
import type { Session } from '../session.ts'
import { behindBar, lengthText, note, paint } from '../terminal.ts'

const BACKOFF = { firstMs: 500, capMs: 10_000 }
/** After each look for what may be deployed. Deploying takes a second or two. */
const LOOKS_MS = [500, 1000, 2000]

export interface Deployment extends Deployed {
  packed: Package
  tookMs: number
  /** False when the folder is again what was deployed before it was broken. */
  isNew: boolean
}

/** Deploys a folder whenever it holds something else than before. */
export class Deployer {
  private readonly session: Session
  private readonly folder: string
  /** What was sent last, and what became of it: nothing when it was refused. Unknown after an answer that is lost. */
  private last: { print: string; deployed: Deployed | undefined } | undefined
  private isBroken = false

  constructor(session: Session, folder: string) {
    this.session = session
    this.folder = folder
  }

  /** What is deployed of the folder already, if that is what lies in it now. */
  async asDeployed(): Promise<Deployed | undefined> {
    const packed = await this.pack()
    if (!packed) return undefined
    const found = await this.currentAs(packed).catch((error: unknown) => {
      // The deploy that follows tells it better, or is tried until it goes through.
      if (error instanceof ApiError && mayPass(error)) return undefined
      throw error
    })
    if (found) this.last = { print: fingerprint(packed.files), deployed: found }
    return found
  }

  /** The current version, if it has these files. */
  private async currentAs({ slug, files }: Package): Promise<Deployed | undefined> {
    const found = await this.session.client.workflows.get({ workflow: slug }).catch((error: unknown) => {
      if (error instanceof ApiError && error.code === 'NOT_FOUND') return undefined
      throw error
    })
    return found && fingerprint(found.files) === fingerprint(files) ? found : undefined
  }

  /** What is deployed now; nothing when nothing has changed, or when it was refused, which is told. */
  async deploy(news: AbortSignal): Promise<Deployment | undefined> {
    const since = performance.now()
    const packed = await this.pack()
    if (!packed) return undefined
    const facts = () => ({ packed, tookMs: performance.now() - since })
    const print = fingerprint(packed.files)
    if (print === this.last?.print) return this.again(facts)
    // What was read may be half of a save, and the other half is there now.
    if (news.aborted) return undefined
    const deployed = await this.patiently(packed, news)
    // Sending what was refused once more would only be refused once more.
    if (deployed !== 'outdated') this.last = { print, deployed }
    return deployed && deployed !== 'outdated' ? { ...deployed, ...facts(), isNew: true } : undefined
  }

  /** Who undoes what broke the program wants to hear that it is whole again. */
  private again(facts: () => { packed: Package; tookMs: number }): Deployment | undefined {
    const deployed = this.last?.deployed
    if (!this.isBroken || !deployed) return undefined
    this.isBroken = false
    return { ...deployed, ...facts(), isNew: false }
  }

  private async pack(): Promise<Package | undefined> {
    try {
      return await packFolder(this.folder)
    } catch (error) {
      this.tell(error, 'still watching')
      return undefined
    }
  }

  /**
   * Goes on until the service takes or refuses it, or a newer save takes its place. What is on its way is never given
   * up: it could arrive behind the newer one.
   */
  private async patiently(packed: Package, news: AbortSignal): Promise<Deployed | 'outdated' | undefined> {
    for (let failures = 0; ; failures++) {
      try {
        const deployed = await createOrUpdate(this.session.client, packed)
        this.isBroken = false
        return deployed
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        if (!isRefusal(error) && !mayPass(error)) throw error
        if (!mayPass(error)) {
          this.tell(error, 'still watching')
          return undefined
        }
        // The author may go back to what was deployed before, which may not be the current version any more.
        if (error.mayBeDone) this.last = undefined
        await this.putOff(error, failures, error.mayBeDone ? 'looking for it' : 'trying again', news)
        const done = error.mayBeDone ? await this.lookForIt(packed, news) : undefined
        if (done) return done
      }
      if (news.aborted) return 'outdated'
    }
  }

  /**
   * Sent again, what was done without an answer would be one more version: so it is looked for first, a few times, as
   * the service may be at it still. While nobody answers that, nothing is sent.
   */
  private async lookForIt(packed: Package, news: AbortSignal): Promise<Deployed | undefined> {
    for (let failures = 0, looks = 0; looks < LOOKS_MS.length && !news.aborted;) {
      try {
        const done = await this.currentAs(packed)
        this.isBroken &&= !done
        if (done) return done
        failures = 0
        await pause(LOOKS_MS[looks++]!, news).catch(() => undefined)
      } catch (error) {
        if (!(error instanceof ApiError) || !mayPass(error)) throw error
        await this.putOff(error, failures++, 'looking for it', news)
      }
    }
    return undefined
  }

  private async putOff(trouble: ApiError, failures: number, forWhat: string, news: AbortSignal): Promise<void> {
    const waitMs = pauseMs(trouble, failures)
    this.tell(trouble, `${forWhat} in ${lengthText(waitMs)}`)
    await pause(waitMs, news).catch(() => undefined)
  }

  private tell(error: unknown, next: string): void {
    this.isBroken = true
    const { message, envelope } = reportOf(error, 'deploy')
    if (this.session.isJson) note(JSON.stringify(envelope))
    else
      this.session.progress.note(`${paint('red', '✖')} ${behindBar(message, process.stderr)}\n  ${paint('dim', next)}`)
  }
}

function fingerprint(files: Package['files']): string {
  const hash = createHash('sha256')
  for (const { path, content } of files) hash.update(JSON.stringify([path, content]))
  return hash.digest('hex')
}

/** What is too long for a proxy stays so until something is saved. */
function mayPass(error: ApiError): boolean {
  return error.mayBeDone || (isPassing(error) && error.status !== 413)
}

/** What the author mends by a save; anything else, such as a key without the right, no save will mend. */
function isRefusal(error: ApiError): boolean {
  return [400, 409, 413].includes(error.status)
}

function pauseMs(error: ApiError, failures: number): number {
  const asked = error.detail?.['retryAfterMs']
  return typeof asked === 'number' ? Math.max(asked, BACKOFF.firstMs) : backoffMs(failures, BACKOFF)
}
