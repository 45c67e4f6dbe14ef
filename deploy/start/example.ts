import { spawn } from 'node:child_process'
import { closeSync, existsSync, openSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { LocalAccess } from './local-key.ts'
import type { Teller } from './tell.ts'

const EXAMPLE = 'lockfile-report'
/** Lies in the home once the example has been shown to its end; a start that is killed before that shows it again. */
const MARKER = 'example-shown'
const CLI_WITHIN_MS = 120_000

const sdk = dirname(fileURLToPath(import.meta.resolve('windlass/package.json')))
const root = dirname(sdk)

export function exampleWasShown(home: string): boolean {
  return existsSync(join(home, MARKER))
}

/** Deploys the example and executes it once on this project's own lockfile, by the commands that a person would type. */
export async function showExample(
  access: LocalAccess,
  { home, tell, stop }: { home: string; tell: Teller; stop: AbortSignal },
): Promise<void> {
  const input = join(home, 'example-input.json')
  const report = join(home, 'example-report.json')
  const lockfile = await readFile(join(root, 'package-lock.json'), 'utf8')
  await writeFile(input, JSON.stringify({ name: 'windlass', lockfile }))
  tell.say(`\nFirst start. Deploying the example and running it once:`)
  const wentWell =
    (await windlass(access, { tell, stop }, ['deploy', join('sdk', 'examples', EXAMPLE)])) &&
    (await windlass(access, { tell, stop, into: report }, ['run', EXAMPLE, '--input', `@${input}`]))
  if (wentWell) await writeFile(join(home, MARKER), '')
}

interface Showing {
  tell: Teller
  stop: AbortSignal
  /** File for what it answers: a report of some kilobytes would push what a person looks for out of sight. */
  into?: string
}

/** Runs the CLI as a person would. What goes wrong is shown and keeps nobody from using the instance. Answers whether it went well. */
function windlass(access: LocalAccess, { tell, stop, into }: Showing, args: string[]): Promise<boolean> {
  if (stop.aborted) return Promise.resolve(false)
  tell.say(`\n$ npx windlass ${args.join(' ')}${into === undefined ? '' : ` > ${into}`}`)
  const env = { ...process.env, WINDLASS_URL: access.url, WINDLASS_API_KEY: access.apiKey, WINDLASS_ORG: access.org }
  // With --json, stdout carries one line of facts and nothing else.
  const answers = into === undefined ? undefined : openSync(into, 'w', 0o600)
  const stdio = ['ignore', answers ?? (tell.json ? process.stderr : 'inherit'), 'inherit'] as const
  const child = spawn(process.execPath, [join(sdk, 'cli', 'windlass.mjs'), ...args], {
    cwd: root,
    env,
    stdio: [...stdio],
    timeout: CLI_WITHIN_MS,
  })
  if (answers !== undefined) closeSync(answers)
  const end = () => void child.kill()
  stop.addEventListener('abort', end, { once: true })
  return new Promise<boolean>((resolve) => {
    child.once('error', (error) => {
      tell.fail(`windlass ${args[0]} could not be started: ${error.message}`)
      resolve(false)
    })
    child.once('exit', (code) => {
      if (code !== 0 && !stop.aborted) tell.fail(`windlass ${args[0]} ended with exit code ${code}`)
      resolve(code === 0)
    })
  }).finally(() => stop.removeEventListener('abort', end))
}
