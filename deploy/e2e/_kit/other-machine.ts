import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, realpathSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { testRunVariables } from '@windlass/shared/test/_kit/test-run.ts'
import { PROJECT } from '../../tools/source-files.ts'

/** A registry where nobody is: what is asked of it fails at once. */
const NO_REGISTRY = 'http://127.0.0.1:9'
const DEADLINE_MS = 120_000

export interface Said {
  code: number
  stdout: string
  stderr: string
}

/** A machine without a checkout: an empty home, one Node, npm, and no registry in reach. */
export interface OtherMachine {
  readonly home: string
  run(cwd: string, file: string, ...args: string[]): Promise<Said>
  npm(cwd: string, ...args: string[]): Promise<Said>
  npx(cwd: string, ...args: string[]): Promise<Said>
}

/** `env` names the service, as a profile would. */
export function otherMachine(home: string, node: string, env: Record<string, string>): OtherMachine {
  const bin = path.join(home, 'bin')
  mkdirSync(bin, { recursive: true })
  symlinkSync(node, path.join(bin, 'node'))
  // What makes our modules load fast is not for another Node.
  const { NODE_OPTIONS: _, NODE_COMPILE_CACHE: __, ...mark } = testRunVariables()
  const variables = {
    ...mark,
    PATH: `${bin}:/usr/bin:/bin`,
    HOME: home,
    npm_config_cache: path.join(home, '.npm'),
    npm_config_registry: NO_REGISTRY,
    npm_config_update_notifier: 'false',
    npm_config_audit: 'false',
    ...env,
  }
  const run = (cwd: string, file: string, ...args: string[]) =>
    new Promise<Said>((resolve) => {
      const options = { cwd, env: variables, timeout: DEADLINE_MS, killSignal: 'SIGKILL' } as const
      execFile(file, args, options, (error, stdout, stderr) => {
        resolve({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr })
      }).stdin?.end()
    })
  const npm = npmFolder()
  return {
    home,
    run,
    npm: (cwd, ...args) => run(cwd, path.join(bin, 'node'), path.join(npm, 'npm-cli.js'), ...args),
    npx: (cwd, ...args) => run(cwd, path.join(bin, 'node'), path.join(npm, 'npx-cli.js'), ...args),
  }
}

/** The npm that runs this, else the first one in the PATH. */
function npmFolder(): string {
  const running = process.env['npm_execpath']
  if (running !== undefined && path.basename(running) === 'npm-cli.js') return path.dirname(running)
  const folders = (process.env['PATH'] ?? '').split(path.delimiter)
  const found = folders.map((folder) => path.join(folder, 'npm')).find((file) => existsSync(file))
  if (found === undefined) throw new Error('there is no npm in the PATH')
  return path.dirname(realpathSync(found))
}

/** The two compilers that the types are written for: 7 and 5. */
export const COMPILERS = ['typescript', 'typescript-api'].map((name) =>
  path.join(PROJECT, 'node_modules', name, 'bin/tsc'),
)
