import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'

/** What a program in bubblewrap has, and what it has not. */
export async function run({ url }) {
  const status = fs.readFileSync('/proc/self/status', 'utf8')
  fs.writeFileSync('/tmp/mine', 'mine')
  const sizes = ['/home', '/root', '/var', '/run', '/sys', '/srv', '/mnt'].filter((folder) => fs.existsSync(folder))
  return {
    top: fs.readdirSync('/').sort(),
    hidden: sizes,
    processes: fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).length,
    user: os.userInfo().username,
    capabilities: /^CapEff:\s*(\w+)/m.exec(status)?.[1],
    noNewPrivileges: /^NoNewPrivs:\s*1/m.test(status),
    isSameTmp: fs.existsSync(`${process.env.TMPDIR}/mine`),
    canMakeNamespaces: succeeds(() => execFileSync('unshare', ['-Ur', 'true'], { stdio: 'ignore' })),
    interfaces: Object.keys(os.networkInterfaces()),
    reached: await reach(url),
  }
}

function succeeds(attempt) {
  try {
    attempt()
    return true
  } catch {
    return false
  }
}

async function reach(url) {
  try {
    return (await fetch(url)).status
  } catch (error) {
    return error.cause?.code ?? error.message
  }
}
