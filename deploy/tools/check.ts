// `npm run check`: everything that can be told without running the product. One line per step, details of what failed.
import { spawn } from 'node:child_process'
import path from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { PROJECT } from './source-files.ts'

interface Step {
  readonly name: string
  /** A script for this Node, from the project's root, and its arguments. */
  readonly run: readonly [script: string, ...args: string[]]
}

// Ten times what the longest takes alone: where others work too, lint has needed 90 s.
const DEADLINE_MS = 300_000
// On two cores no faster with more; lint and types take several threads each as it is.
const AT_ONCE = 2

/** What the last check knew of the types: with it a check takes a sixth of the time. `npm ci` removes it. */
const TYPES = 'node_modules/.cache/windlass-check/types.tsbuildinfo'

const RATCHETS: Step = { name: 'ratchets', run: ['deploy/tools/ratchets.ts'] }
// `npm run check -- --shrink`: takes away from the ratchets' lists what is mended, and nothing else.
const SHRINK: Step = { name: 'ratchets', run: ['deploy/tools/ratchets.ts', '--shrink'] }

// Longest first, so that the last to end is a short one.
const STEPS: readonly Step[] = [
  { name: 'dependencies', run: ['deploy/tools/dependencies.ts'] },
  { name: 'lint', run: ['node_modules/oxlint/bin/oxlint'] },
  { name: 'imports', run: ['deploy/tools/imports.ts'] },
  { name: 'types', run: ['node_modules/typescript/bin/tsc', '-p', '.', '--incremental', '--tsBuildInfoFile', TYPES] },
  RATCHETS,
  { name: 'format', run: ['node_modules/oxfmt/bin/oxfmt', '--check'] },
  // A file that is moved or removed leaves its name behind on a page; this says so before the whole of the tests does.
  { name: 'pages', run: ['deploy/test/tools/links.test.ts'] },
]

interface Outcome {
  readonly ok: boolean
  readonly output: string
}

function runStep(step: Step): Promise<Outcome> {
  const [script, ...args] = step.run
  const child = spawn(process.execPath, [path.join(PROJECT, script), ...args], {
    cwd: PROJECT,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: DEADLINE_MS,
    killSignal: 'SIGKILL',
  })
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      // oxlint colours whenever `CI` is set, whatever NO_COLOR says.
      const output = stripVTControlCharacters(Buffer.concat(chunks).toString()).trimEnd()
      const ending = signal ? `\nended by ${signal}; a step has ${DEADLINE_MS / 1000} s` : ''
      resolve({ ok: code === 0, output: output + ending })
    })
  })
}

async function report(step: Step): Promise<boolean> {
  const from = performance.now()
  const { ok, output } = await runStep(step)
  const seconds = ((performance.now() - from) / 1000).toFixed(1)
  console.log(`${ok ? '✔' : '✖'} ${step.name.padEnd(14)} ${seconds} s`)
  if (!ok) console.log(`${output.replace(/^/gm, '    ')}\n`)
  return ok
}

async function worker(waiting: Step[]): Promise<boolean> {
  let allOk = true
  for (let step = waiting.shift(); step; step = waiting.shift()) allOk = (await report(step)) && allOk
  return allOk
}

const waiting = process.argv.includes('--shrink') ? [SHRINK] : [...STEPS]
const results = await Promise.all(Array.from({ length: AT_ONCE }, () => worker(waiting)))
process.exitCode = results.every(Boolean) ? 0 : 1
