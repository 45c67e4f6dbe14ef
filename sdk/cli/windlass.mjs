#!/usr/bin/env node
// Plain JavaScript that an old Node can still read: it finds a Node that runs TypeScript and hands over.
import { spawn } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

// Set for the second process, so that a wrong Node behind the right name ends in words rather than in a loop.
const HANDED_OVER = 'WINDLASS_CLI_HANDED_OVER'

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const isRight = major === 22 && minor >= 18
// Later ones strip types too; the product is not tested on them, so the one that npm installed goes first.
const isUsable = isRight || major >= 24

const handedOver = process.env[HANDED_OVER] !== undefined
delete process.env[HANDED_OVER]
const installed = isRight || handedOver ? undefined : installedNode()

if (installed) handOver(installed)
else if (isUsable) await import('./main.ts')
else refuse()

/** The Node that `npm install` put beside the packages, looked for from this file upwards. */
function installedNode() {
  let folder = path.dirname(realpathSync(fileURLToPath(import.meta.url)))
  for (;;) {
    const candidate = path.join(folder, 'node_modules', '.bin', 'node')
    if (existsSync(candidate)) return candidate
    const parent = path.dirname(folder)
    if (parent === folder) return undefined
    folder = parent
  }
}

function handOver(node) {
  const env = { ...process.env, [HANDED_OVER]: '1' }
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: 'inherit', env })
  // A terminal sends Ctrl-C to both of us; passing it on as well would count as a second one.
  process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'))
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('error', (error) => {
    process.stderr.write(`windlass: cannot start ${node}: ${error.message}\n`)
    process.exitCode = 1
  })
  child.on('exit', (code, signal) => {
    if (signal) {
      process.removeAllListeners(signal)
      process.kill(process.pid, signal)
    } else process.exitCode = code ?? 1
  })
}

function refuse() {
  process.stderr.write(
    `windlass needs Node 22.18 or a later 22, and this is ${process.versions.node}.\n` +
      'Next: run `npm ci` in the project, which brings the right one along, or install Node 22.\n',
  )
  process.exitCode = 2
}
