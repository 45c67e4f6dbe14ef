import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'

/** Leaves a file that makes whoever executes it its owner, opens the way to it, says how it is itself, and goes on. */
export async function run() {
  fs.copyFileSync('/bin/cat', 'setuid')
  fs.chmodSync('setuid', 0o4755)
  fs.chmodSync('.', 0o711)
  const status = fs.readFileSync('/proc/self/status', 'utf8')
  const descriptors = fs.readdirSync('/proc/self/fd').map((name) => linkOf(`/proc/self/fd/${name}`))
  const seen = {
    cwd: process.cwd(),
    user: os.userInfo().username,
    powers: [...status.matchAll(/^Cap(?:Inh|Prm|Eff|Amb):\s*(\w+)/gm)].map(([, each]) => each),
    noNewPrivileges: /^NoNewPrivs:\s*1/m.test(status),
    canMakeNamespaces: canMakeNamespaces(),
    namespaces: descriptors.filter((each) => each.startsWith('user:')),
  }
  console.log(JSON.stringify(seen))
  await new Promise((resolve) => setTimeout(resolve, 600_000))
}

function linkOf(file) {
  try {
    return fs.readlinkSync(file)
  } catch {
    return ''
  }
}

function canMakeNamespaces() {
  try {
    execFileSync('unshare', ['-Ur', 'true'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
