import { execFile, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { BenchInstance } from './bench-instance.ts'
import { reportDelays } from './delays.ts'
import { bareSpawnMs, byRepeat, median } from './measure.ts'
import { atMost, type Report } from './row.ts'

const run = promisify(execFile)

const SAMPLES_PER_REPEAT = 10
const INSTALL_MS = 120_000
const COMMAND_MS = 30_000
/** A person waits for each command: what Node itself takes, and half as much. */
const MOST_OF_VERSION = 1.5
/** A request and a table, more than Node itself takes. */
const MOST_OF_LIST_MS = 150

/** How long a person waits for a command of the package for npm, beside a bare `node -e 0`. */
export async function benchCli(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'windlass-bench-cli-'))
  try {
    const command = await installed(folder, instance.url)
    const env = {
      ...process.env,
      WINDLASS_URL: instance.url,
      WINDLASS_API_KEY: instance.apiKey,
      WINDLASS_ORG: 'default',
    }
    const tookMs = (...args: string[]) => commandMs([command, ...args], { cwd: folder, env })
    const [bare, version, list]: [number[], number[], number[]] = [[], [], []]
    await tookMs('runs', 'list')
    for (let i = 0; i < repeats * SAMPLES_PER_REPEAT; i++) {
      bare.push(await bareSpawnMs())
      version.push(await tookMs('--version'))
      list.push(await tookMs('runs', 'list'))
    }
    const against = { to: 'bare node', samples: bare }
    const most = { p50: MOST_OF_VERSION }
    reportDelays(report, { name: 'windlass --version, start to exit', samples: version, repeats, against, most })
    reportDelays(report, { name: 'windlass runs list, start to exit', samples: list, repeats, against })
    const beyond = byRepeat(list, repeats).map((part, i) => median(part) - median(byRepeat(bare, repeats)[i]!))
    const value = median(list) - median(bare)
    const name = 'windlass runs list, more than a bare node, p50'
    report({ name, value, unit: 'ms', repeats: beyond, goal: atMost(value, MOST_OF_LIST_MS, 'ms') })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Installs the CLI as the service gives it to others. Returns the file that is started. */
async function installed(folder: string, url: string): Promise<string> {
  const answer = await fetch(`${url}/downloads/packages.json`)
  const { files } = (await answer.json()) as { files: Record<'windlass' | 'windlass-cli', string> }
  await writeFile(join(folder, 'package.json'), '{ "private": true }')
  const packages = [files.windlass, files['windlass-cli']].map((file) => `${url}/downloads/${file}`)
  const quietly = ['--no-audit', '--no-fund', '--omit=optional', '--prefer-offline']
  await run('npm', ['install', ...quietly, ...packages], { cwd: folder, timeout: INSTALL_MS })
  return join(folder, 'node_modules/.bin/windlass')
}

function commandMs(args: string[], options: { cwd: string; env: NodeJS.ProcessEnv }): Promise<number> {
  const since = performance.now()
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { ...options, stdio: 'ignore', timeout: COMMAND_MS })
    child.once('error', reject)
    child.once('exit', (code) => {
      if (code === 0) resolve(performance.now() - since)
      else reject(new Error(`windlass ${args.slice(1).join(' ')} ended with ${code}`))
    })
  })
}
