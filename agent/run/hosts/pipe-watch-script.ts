import { STALL_WATCH_SCRIPT } from './stall-watch-script.ts'

/**
 * Code of the thread that `pipe-watch.ts` tells about. It never opens, reads, writes or closes one of the pipes: it
 * would wait as well. `workerData` is what `pipe-watch.ts` gives it.
 *
 * The kernel says of the agent's first thread where it waits (`wchan`: `pipe_read`, `anon_pipe_read`, `pipe_write`,
 * `pipe_release`, `fifo_open`), for which of its descriptors (the first argument in `syscall`), and whether it has
 * executed since the last look (`schedstat`, or the switches in `status`). Some kernels hide the first.
 */
export const PIPE_WATCH_SCRIPT = `
const { parentPort, workerData } = require('node:worker_threads')
const { spawnSync } = require('node:child_process')
const { opendirSync, openSync, readFileSync, readSync, readdirSync, statSync, writeFileSync } = require('node:fs')
const { lookMs, sliceMs, patienceMs, hastyMs, mostPressure } = workerData
const { othersMs, mountMs, mount, runs, stallMs, longStallMs } = workerData
/** Its number among the calls of the system. */
const CLOSE = { x64: '3', arm64: '57' }[process.arch]
const thread = '/proc/self/task/' + process.pid + '/'
const place = attempt(() => openSync(thread + 'wchan')), text = Buffer.alloc(64)
const MOST_GONE = 10000, END = Symbol('end')
const holders = new Map(), byDescriptor = new Map(), told = new Set()
let current, known, stoodMs = 0, pressure = 0, lookedAt = performance.now()
/** How much of the pressure comes from each holder, of late. */
const shares = new Map()

parentPort.on('message', ({ add, init, forget, begin, end }) => {
  if (add) {
    holders.set(add.number, { ...add, started: startOf(add.group) })
    for (const fd of add.descriptors) byDescriptor.set(fd, add.number)
  } else if (init) holders.get(init.number).init = init.of
  else if (begin) current = { ...begin, started: startOf(begin.group) }
  else if (end) current = undefined
  else {
    const holder = holders.get(forget)
    for (const fd of holder?.descriptors ?? []) if (byDescriptor.get(fd) === forget) byDescriptor.delete(fd)
    for (const each of [holders, told]) each.delete(forget)
    shares.delete(holder)
  }
})

function look() {
  // While all of the agent is stopped nobody waits, and the clock goes on.
  const passedMs = Math.min(performance.now() - lookedAt, 2 * lookMs)
  lookedAt = performance.now()
  attempt(() => lookAtTasks(passedMs))
  lookAtPipes(passedMs)
}

function lookAtPipes(passedMs) {
  const holder = isAtPipe() ? holderThere() : undefined
  const looks = passedMs / lookMs
  for (const [each, share] of shares) shares.set(each, share * 0.9 ** looks)
  if (!holder) {
    known = undefined
    pressure = Math.max(0, pressure - looks)
    return
  }
  pressure += looks
  shares.set(holder, (shares.get(holder) ?? 0) + looks)
  const executed = executedSoFar(thread)
  stoodMs = executed !== undefined && executed === known ? stoodMs + passedMs : 0
  known = executed
  if (stoodMs >= (pressure > mostPressure / 3 ? hastyMs : patienceMs)) tell(holder, stoodMs)
  else if (pressure >= mostPressure) endWorst()
}

/** The lock changes hands so often that the agent is never seen to stand still, and hardly gets on. */
function endWorst() {
  const [holder] = [...shares].reduce((worst, each) => (each[1] > worst[1] ? each : worst))
  tell(holder, pressure * lookMs)
  pressure /= 2
  shares.delete(holder)
}

/** Another pipe may have got the number of one that was, and anything that of one that is being closed. */
function holderThere() {
  const [call, first] = read(thread + 'syscall').split(' ')
  const fd = parseInt(first, 16)
  const holder = holders.get(byDescriptor.get(fd))
  if (!holder || call === CLOSE) return holder ?? current
  return isOneOf(holder.pipes, attempt(() => statSync('/proc/self/fd/' + fd))) ? holder : undefined
}

function isAtPipe() {
  const at = attempt(() => text.latin1Slice(0, readSync(place, text, 0, text.length, 0))) ?? ''
  if (/pipe|fifo/.test(at)) return true
  if (at !== '' && at !== '0') return false
  return isUninterruptible(thread)
}

/** No signal but its cause ends that it waits. */
function isUninterruptible(folder) {
  return / D /.test(read(folder + 'stat').replace(/.*\\)/s, ''))
}

/** Undefined where the kernel counts nothing of the kind. */
function executedSoFar(folder) {
  const text = read(folder + 'schedstat')
  if (/[1-9]/.test(text)) return text
  return /ctxt_switches[^]*/.exec(read(folder + 'status'))?.[0]
}

function tell(holder, waitedMs) {
  const isFirst = !told.has(holder.number)
  endWhole(holder, waitedMs)
  // Nearly always that was enough.
  if (!isFirst) searchFor(holder, waitedMs)
}

function endWhole(holder, waitedMs) {
  report(holder, waitedMs, 'pipe')
  endAll(holder)
  if (holder.uid !== undefined) endFileSystems(holder.uid, waitedMs > othersMs)
}

/** Before it is ended, so that the agent hears of this before it hears of that. */
function report({ number, group, uid }, waitedMs, held) {
  if (!told.has(number)) parentPort.postMessage({ number, group, uid, waitedMs, held })
  told.add(number)
}

function endAll({ group, started, uid, folder, init }) {
  if (folder !== undefined) attempt(() => writeFileSync(folder + '/cgroup.kill', '1'))
  // A pid namespace ends with its first process, also what has left the group.
  if (init && startOf(init.pid) === init.started) kill(init.pid)
  // Its number is nobody else's as long as there is anything of the group.
  const leader = startOf(group)
  if (group > 1 && (leader === undefined || leader === started)) kill(-group)
  if (uid !== undefined) for (const pid of processes()) if (isOf(pid, uid)) kill(pid)
}

function* processes() {
  for (const name of namesIn('/proc')) if (Number(name) > 1 && Number(name) !== process.pid) yield Number(name)
}

/**
 * One by one: a process may have a million descriptors. What is gone just then throws, and those behind it are still
 * to be read.
 */
function* namesIn(folder) {
  const names = attempt(() => opendirSync(folder, { bufferSize: 1 }))
  if (!names) return
  try {
    for (let gone = 0; gone < MOST_GONE; ) {
      const entry = attempt(() => names.readSync() ?? END)
      if (entry === END) return
      if (entry) yield entry.name
      else gone++
    }
  } finally {
    attempt(() => names?.closeSync())
  }
}

let searching

/**
 * Who has the pipe open, of all processes that may be looked into: a program may have handed it to another run.
 * Thousands with thousands of descriptors take minutes: meanwhile the looks go on, since others may hold theirs.
 */
function searchFor({ pipes }, waitedMs) {
  if (searching) return
  searching = search(pipes, waitedMs)
  goOn()
}

function goOn() {
  const until = performance.now() + sliceMs
  while (performance.now() < until)
    if (searching.next().done) {
      searching = undefined
      return
    }
  setTimeout(goOn, 1)
}

function* search(pipes, waitedMs) {
  for (const pid of processes()) {
    yield
    const folder = '/proc/' + pid + '/fd/'
    for (const fd of namesIn(folder)) {
      yield
      if (!isOneOf(pipes, attempt(() => statSync(folder + fd)))) continue
      const run = [...holders.values()].find(({ uid }) => uid !== undefined && isOf(pid, uid))
      if (run) endWhole(run, waitedMs)
      else kill(pid)
      break
    }
  }
}

/** When the process was started, as the kernel counts; undefined where there is none. */
function startOf(pid) {
  return read('/proc/' + pid + '/stat').replace(/.*\\) /s, '').split(' ')[19]
}

function isOf(pid, uid) {
  return (/^Uid:(.*)/m.exec(read('/proc/' + pid + '/status'))?.[1] ?? '').split('\\t').includes(String(uid))
}

function isOneOf(pipes, found) {
  return found !== undefined && pipes.some(({ dev, ino }) => dev === found.dev && ino === found.ino)
}

function kill(pid) {
  attempt(() => process.kill(pid, 'SIGKILL'))
}

function read(file) {
  return attempt(() => readFileSync(file, 'latin1')) ?? ''
}

/** What is asked of may be gone, or not for us. */
function attempt(ask) {
  try {
    return ask()
  } catch {
    return undefined
  }
}

/** At no time that a program could foresee. */
function lookLater() {
  setTimeout(() => {
    attempt(look)
    lookLater()
  }, lookMs * (0.5 + Math.random()))
}
${STALL_WATCH_SCRIPT}
lookLater()`
