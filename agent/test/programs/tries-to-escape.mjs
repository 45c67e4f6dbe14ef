import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'

/** Every way to what is not its own that this program knows. Answers which of them led there. */
export function run({ agentPid, home, others, files, cgroup, victim }) {
  const reads = [
    ...files.map((file) => ['read ' + file, () => fs.readFileSync(file)]),
    ...['environ', 'mem', 'maps', 'fd', 'cwd', 'root'].map((name) => ['agent ' + name, () => look(agentPid, name)]),
    ...['environ', 'mem', 'fd', 'cwd', 'root'].map((name) => ['victim ' + name, () => look(victim, name)]),
    ...others.map((folder) => ['list ' + folder, () => fs.readdirSync(folder)]),
    ['see more of home than what is its own', () => more(home, ['bundles', 'runtime', 'workspaces'])],
    ['see bundles of others', () => more(path.join(home, 'bundles'), [path.basename(import.meta.dirname)])],
    ['see workspaces of others', () => more(path.join(home, 'workspaces'), [path.basename(process.cwd())])],
  ]
  const writes = [
    ['write into its bundle', () => fs.appendFileSync(path.join(import.meta.dirname, 'main.mjs'), '//')],
    ['make in its bundle', () => fs.writeFileSync(path.join(import.meta.dirname, 'more.mjs'), '')],
    ['make in runtime', () => fs.writeFileSync(path.join(path.dirname(process.argv[1]), 'more.cjs'), '')],
    ['write into the runtime', () => fs.appendFileSync(process.argv[1], '//')],
    ['leave the cgroup', () => fs.writeFileSync(cgroup, String(process.pid))],
    ['signal the agent', () => process.kill(other(agentPid), 0)],
    ['signal the other run', () => process.kill(other(victim), 0)],
    ['trace the agent', () => trace(agentPid)],
    ['become root', () => process.setuid(0)],
    ['be root by sudo', () => execFileSync('sudo', ['-n', 'true'], { stdio: 'ignore' })],
    // Opened and no more: should it be possible, the machine is to be as it was.
    ['write to /usr', () => fs.accessSync('/usr', fs.constants.W_OK)],
    ['change the kernel', () => fs.closeSync(fs.openSync('/proc/sys/kernel/core_pattern', 'r+'))],
    ['restart the machine', () => fs.closeSync(fs.openSync('/proc/sysrq-trigger', 'r+'))],
    ['read shadow', () => fs.readFileSync('/etc/shadow')],
    ['list /root', () => fs.readdirSync('/root')],
  ]
  const led = [...reads, ...writes].filter(([, attempt]) => succeeds(attempt)).map(([name]) => name)
  // Where the folder is one of its own that only has the same name, that leads nowhere: whoever called looks at the real one.
  succeeds(() => fs.writeFileSync(path.join(home, 'mine'), ''))
  succeeds(() => fs.renameSync(path.join(home, 'bundles'), path.join(home, 'theirs')))
  return led
}

function more(folder, own) {
  if (fs.readdirSync(folder).every((name) => own.includes(name))) throw new Error('nothing but its own')
}

/** In a namespace of its own these numbers are those of others, or of nobody: what is read there is not the agent's. */
function look(pid, name) {
  const file = `/proc/${other(pid)}/${name}`
  if (name === 'fd') return fs.readdirSync(file)
  if (name === 'cwd' || name === 'root') return fs.readdirSync(`${file}/`)
  const fd = fs.openSync(file, 'r')
  const bytes = fs.readSync(fd, Buffer.alloc(64), 0, 64, name === 'mem' ? 4096 : 0)
  fs.closeSync(fd)
  if (bytes === 0) throw new Error('empty')
}

/** What a debugger needs: the same right as to attach. */
function trace(pid) {
  return fs.readlinkSync(`/proc/${other(pid)}/exe`)
}

/** A number that one of its own threads has where it is says nothing of who has it elsewhere. */
function other(pid) {
  if (fs.existsSync(`/proc/self/task/${pid}`)) throw new Error('its own number')
  return pid
}

function succeeds(attempt) {
  try {
    attempt()
    return true
  } catch {
    return false
  }
}
