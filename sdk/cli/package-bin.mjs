#!/usr/bin/env node
// The command of the package `windlass-cli`: plain JavaScript that an old Node can still read.
const OLDEST = 20

const [major = 0] = process.versions.node.split('.').map(Number)
const args = process.argv.slice(2)

if (major < OLDEST) {
  process.stderr.write(
    `windlass needs Node ${OLDEST} or newer, and this is ${process.versions.node}.\nNext: install Node 22.\n`,
  )
  process.exitCode = 2
} else if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
  // Nothing is loaded for it.
  process.stdout.write('@VERSION@\n')
} else {
  await keepCompiled()
  await import('../lib/cli/main.mjs')
}

/** Compiling takes as long as all else that a command does; from Node 22.1 on V8's result can be kept. */
async function keepCompiled() {
  const { HOME, XDG_CACHE_HOME } = process.env
  const cache = XDG_CACHE_HOME || (HOME && `${HOME}/.cache`)
  const { enableCompileCache } = await import('node:module')
  // A folder of this user alone: the default is one that all users share.
  if (cache) enableCompileCache?.(`${cache}/windlass/compiled`)
}
