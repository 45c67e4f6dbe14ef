import type { Command } from 'commander'
import { createClient } from '../client/index.ts'
import type { Client } from '../client/index.ts'
import { limitedWaits } from './limited.ts'
import { Progress } from './progress.ts'
import { settingsFrom } from './settings.ts'
import type { GlobalFlags, Settings } from './settings.ts'
import { json, print } from './terminal.ts'

/** What a command works with. The service is looked up when it is first asked for: some commands need none. */
export class Session {
  readonly flags: GlobalFlags
  readonly progress: Progress
  private known: { settings: Settings; client: Client } | undefined

  constructor(flags: GlobalFlags) {
    this.flags = flags
    this.progress = new Progress(this.isJson)
  }

  get isJson(): boolean {
    return this.flags.json === true
  }

  get settings(): Settings {
    return this.service.settings
  }

  get client(): Client {
    return this.service.client
  }

  /** The API's answer as it came with `--json`, else the given view of it. */
  async answer(value: unknown, view: () => void | Promise<void>): Promise<void> {
    if (this.isJson) print(json(value))
    else await view()
  }

  private get service() {
    this.known ??= connect(settingsFrom(this.flags), this.isJson)
    return this.known
  }
}

function connect(settings: Settings, isJson: boolean) {
  return { settings, client: createClient({ ...settings, onLimited: limitedWaits(isJson) }) }
}

/** What a command does; a number is the exit code, 0 when there is none. */
export type Does = (session: Session, positional: string[], options: Record<string, unknown>) => Promise<number | void>

/** Binds what a command does. Errors pass through to `main`, which tells them in one way. */
export function does(command: Command, work: Does): Command {
  return command.action(async () => {
    const session = new Session(command.optsWithGlobals<GlobalFlags>())
    try {
      const exit = await work(session, command.processedArgs as string[], command.opts())
      if (exit !== undefined) process.exitCode = exit
    } finally {
      session.progress.end()
    }
  })
}
