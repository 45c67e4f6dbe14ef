import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
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
  const lockfile = await readFile(join(root, 'package-lock.json'), 'utf8')
  await writeFile(input, JSON.stringify({ name: 'windlass', lockfile }))
  tell.say(`\nFirst start. Deploying the example and running it once:`)
  const wentWell =
    (await windlass(access, { tell, stop }, ['deploy', join('sdk', 'examples', EXAMPLE)])) &&
    (await windlass(access, { tell, stop }, ['run', EXAMPLE, '--input', `@${input}`]))
  if (wentWell) await writeFile(join(home, MARKER), '')
}

/** Runs the CLI as a person would. What goes wrong is shown and keeps nobody from using the instance. Answers whether it went well. */
function windlass(
  access: LocalAccess,
  { tell, stop }: { tell: Teller; stop: AbortSignal },
  args: string[],
): Promise<boolean> {
  if (stop.aborted) return Promise.resolve(false)
  tell.say(`\n$ npx windlass ${args.join(' ')}`)
  const env = { ...process.env, WINDLASS_URL: access.url, WINDLASS_API_KEY: access.apiKey, WINDLASS_ORG: access.org }
  // With --json, stdout carries one line of facts and nothing else.
  const stdio = ['ignore', tell.json ? process.stderr : 'inherit', 'inherit'] as const
  const child = spawn(process.execPath, [join(sdk, 'cli', 'windlass.mjs'), ...args], {
    cwd: root,
    env,
    stdio: [...stdio],
    timeout: CLI_WITHIN_MS,
  })
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
