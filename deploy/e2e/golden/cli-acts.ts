import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { watchCli } from '../_kit/start-process.ts'
import type { Act } from './golden-file.ts'
import { filesOf, Transcript } from './transcript.ts'
import type { World } from './world.ts'

const PATIENCE_MS = 120_000
const ID = (prefix: string) => new RegExp(`${prefix}_[0-9a-z]{26}`)

/** Lines of standard error about long waits. Which waits are long depends on the machine. */
const WAITS = 'packing|(starting|deploying) \\S+|queued, waiting for a runner|a runner is starting it|running'
const PROGRESS = new RegExp(`^((${WAITS})(, \\d.*)?|No runner has taken it yet\\..*)$`)
/** How long something took: in a column, after how a run ended, in brackets. */
const MEASURED = /(?<=\t|^computing +|(completed|failed|cancelled) in |\()(\d+ min \d+ s|\d+(\.\d)? m?s)\b/g

/** Commands as a script would call them: exit code, standard output, standard error. */
export class CliTranscript extends Transcript {
  readonly #folder: string

  constructor(world: World) {
    super(world, 'cli')
    this.#folder = join(world.instance().home, 'cli-golden')
    mkdirSync(this.#folder, { recursive: true })
  }

  /** Answers standard output. */
  async act(name: string, command: string, env: Record<string, string> = {}): Promise<string> {
    const args = command.match(/'[^']*'|\S+/g)!.map((arg) => arg.replace(/^'|'$/g, ''))
    const { url, apiKey, session, slug } = this.org
    const settings = { WINDLASS_URL: url, WINDLASS_API_KEY: apiKey, WINDLASS_SESSION: session, WINDLASS_ORG: slug }
    const homes = { HOME: this.#folder, WINDLASS_HOME: this.#folder }
    const cli = watchCli(args, { cwd: this.#folder, env: { ...homes, ...settings, ...env } })
    const code = await cli.ended(PATIENCE_MS)
    const shown = [...this.#part('stdout', cli.stdout()), ...this.#part('stderr', cli.stderr())]
    this.add(name, `$ windlass ${this.names.text(command)}`, `exit ${code}`, ...shown)
    return cli.stdout()
  }

  /** The id in what a command has printed. */
  async idFrom(prefix: string, name: string, command: string): Promise<string> {
    const [id] = ID(prefix).exec(await this.act(name, command)) ?? []
    if (id === undefined) throw new Error(`${name}: no id of a ${prefix}`)
    return id
  }

  write(folder: string, files: readonly { path: string; content: string }[]): void {
    for (const { path, content } of files) {
      const file = join(this.#folder, folder, path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, content)
    }
  }

  #part(name: string, text: string): string[] {
    if (text === '') return []
    const lines = text
      .trimEnd()
      .split('\n')
      .filter((line) => !PROGRESS.test(line))
    return lines.length === 0 ? [] : [`${name}:`, ...lines.map((line) => `  ${this.#line(line)}`.trimEnd())]
  }

  /** JSON is laid out, and how long something took is no matter. */
  #line(line: string): string {
    if (/^[{[]/.test(line)) return this.json(JSON.parse(line)).replaceAll('\n', '\n  ')
    return this.names.text(line).replace(MEASURED, '<length>')
  }
}

export function cliActs(world: World): Promise<Act[]> {
  const cli = new CliTranscript(world)
  return cli.whole(async () => {
    await usageActs(cli)
    await deployActs(cli)
    await runActs(cli)
    await questionActs(cli)
    await settingActs(cli)
  })
}

export const whoAmI = (cli: CliTranscript) => cli.act('whom a key stands for', 'whoami')

/** Another address of this machine, at which nobody listens. */
const NOBODY = '127.0.0.2'

async function usageActs(cli: CliTranscript): Promise<void> {
  await cli.act('help', '--help')
  await cli.act('a command that is none', 'dance')
  await whoAmI(cli)
  await cli.act('a key that nobody made', 'runs list', { WINDLASS_API_KEY: 'wl_nobody' })
  await cli.act('a service that is not there', 'runs list', { WINDLASS_URL: cli.org.url.replace('127.0.0.1', NOBODY) })
}

async function deployActs(cli: CliTranscript): Promise<void> {
  cli.write('greet', filesOf('typed', { slug: 'greet' }))
  cli.write('plays', filesOf('plays', { slug: 'plays', budget: { usd: 1, onBreach: 'notify' } }))
  cli.write('broken', [
    { path: 'workflow.jsonc', content: '{ "slug": "broken" }' },
    { path: 'index.ts', content: 'export function run() {\n  return (\n}\n' },
  ])
  await cli.act('init', 'init fresh')
  await cli.act('deploy', 'deploy greet')
  await cli.act('deploy what is not yet followed', 'deploy plays')
  await cli.act('deploy what does not build', 'deploy broken')
}

async function runActs(cli: CliTranscript): Promise<void> {
  await cli.act('run', `run greet --input '{"name":"Ada"}' --tag first`)
  await cli.act('run what fails', `run plays --input '{"play":"throws"}' --logs`)
  await cli.act('run with what does not fit', `run greet --input '{"name":7}'`)
  const delayed = await cli.idFrom('run', 'run later', `run greet --input '{"name":"Ada"}' --delay 1h --no-follow`)
  await cli.act('why it is not yet in the queue', `runs why ${delayed}`)
  await cli.act('cancel', `runs cancel ${delayed} --reason 'not needed'`)
  await cli.act('logs of a run that was cancelled', `logs ${delayed} -f`)
  await cli.act('logs', 'logs plays')
  await cli.act('list runs', 'runs list --tag first')
  const run = await cli.idFrom('run', 'list runs as JSON', 'runs list --tag first --json')
  await cli.act('get a run', `runs get ${run}`)
  await cli.act('retry', `runs retry ${run} -f`)
  await cli.act('get a run that is none', `runs get run_${'0'.repeat(26)} --json`)
}

async function questionActs(cli: CliTranscript): Promise<void> {
  const { run } = await cli.org.client.runs.trigger({ workflow: 'plays', input: { play: 'asks' } })
  const stage = cli.watch(run.id)
  await stage.sees('run.awaiting_input')
  const input = await cli.idFrom('inp', 'list questions', 'inputs list')
  await cli.act('answer what does not fit', `inputs respond ${input} yes`)
  await cli.act('answer', `inputs respond ${input} '{"approved":true}'`)
  await stage.over()
}

async function settingActs(cli: CliTranscript): Promise<void> {
  await cli.act('make an environment', 'env create staging')
  await cli.act('set variables', 'vars set -e staging A=1 B=2')
  cli.write('.', [{ path: 'token', content: 'hunter2' }])
  await cli.act('set a secret', 'secrets set TOKEN --file token')
  await cli.act('make a key', 'keys create ci --role member --expires 90d')
  await cli.act('the audit log', `audit list --action 'variables.*,secrets.*,keys.*'`)
  await cli.act('list runners', 'runners list')
}
