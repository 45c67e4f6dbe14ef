#!/usr/bin/env node
// Plain JavaScript that an old Node can still read.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

if (major > 22 || (major === 22 && minor >= 18)) await import('../lib/windlass.mjs')
else {
  process.stderr.write(`The agent needs Node 22.18 or newer, and this is ${process.versions.node}.\n`)
  process.exitCode = 78
}
