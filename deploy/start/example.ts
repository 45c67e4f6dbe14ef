import { spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { LocalAccess } from './local-key.ts'
import type { Teller } from './tell.ts'

const EXAMPLE = 'lockfile-report'
const CLI_WITHIN_MS = 120_000

const sdk = dirname(fileURLToPath(import.meta.resolve('windlass/package.json')))
const root = dirname(sdk)

/** Deploys the example and executes it once on this project's own lockfile, by the commands that a person would type. */
export async function showExample(
  access: LocalAccess,
  { home, tell, stop }: { home: string; tell: Teller; stop: AbortSignal },
): Promise<void> {
  const input = join(home, 'example-input.json')
  const lockfile = await readFile(join(root, 'package-lock.json'), 'utf8')
  await writeFile(input, JSON.stringify({ name: 'windlass', lockfile }))
  tell.say(`\nFirst start. Deploying the example and running it once:`)
  await windlass(access, { tell, stop }, ['deploy', join('sdk', 'examples', EXAMPLE)])
  await windlass(access, { tell, stop }, ['run', EXAMPLE, '--input', `@${input}`])
}

/** Runs the CLI as a person would. What goes wrong is shown and keeps nobody from using the instance. */
function windlass(
  access: LocalAccess,
  { tell, stop }: { tell: Teller; stop: AbortSignal },
  args: string[],
): Promise<void> {
  if (stop.aborted) return Promise.resolve()
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
  return new Promise<void>((resolve) => {
    child.once('error', (error) => {
      tell.fail(`windlass ${args[0]} could not be started: ${error.message}`)
      resolve()
    })
    child.once('exit', (code) => {
      if (code !== 0 && !stop.aborted) tell.fail(`windlass ${args[0]} ended with exit code ${code}`)
      resolve()
    })
  }).finally(() => stop.removeEventListener('abort', end))
}
