/**
 * Code of the thread that `pipe-watch.ts` tells about. It never opens, reads, writes or closes one of the pipes: it
 * would wait as well. `workerData`: how often it looks, and how long the agent may wait, in milliseconds.
 *
 * The kernel says of the agent's first thread where it waits (`wchan`: `pipe_read`, `anon_pipe_read`, `pipe_write`,
 * `pipe_release`, `fifo_open`), for which of its descriptors (the first argument in `syscall`), and whether it has
 * executed since the last look (all of `schedstat` counts that). Some kernels hide the first.
 */
export const PIPE_WATCH_SCRIPT = `
const { parentPort, workerData } = require('node:worker_threads')
const { openSync, readFileSync, readSync, readdirSync, statSync, writeFileSync } = require('node:fs')
const { lookMs, patienceMs, alertMs, alertForMs, mostPressure } = workerData
const thread = '/proc/self/task/' + process.pid + '/'
const place = attempt(() => openSync(thread + 'wchan')), text = Buffer.alloc(64)
const holders = new Map(), byDescriptor = new Map()
let current, known, since = 0, toldOf, alertUntil = 0, pressure = 0
/** How often it was found at the pipe of each, since there was no pressure. */
const found = new Map()

parentPort.on('message', ({ add, forget, begin, end }) => {
  if (add) {
    holders.set(add.number, add)
    for (const fd of add.descriptors) byDescriptor.set(fd, add.number)
  } else if (begin) current = begin
  else if (end) current = undefined
  else {
    for (const fd of holders.get(forget)?.descriptors ?? [])
      if (byDescriptor.get(fd) === forget) byDescriptor.delete(fd)
    holders.delete(forget)
  }
})

function look() {
  const holder = isAtPipe() ? holderThere() : undefined
  if (!holder) {
    known = ''
    pressure = Math.max(0, pressure - 1)
    if (pressure === 0) found.clear()
    return
  }
  const now = performance.now()
  const executed = read(thread + 'schedstat')
  if (executed !== known) since = now
  known = executed
  pressure += 1
  found.set(holder, (found.get(holder) ?? 0) + 1)
  if (now - since >= (now < alertUntil ? alertMs : patienceMs)) tell(holder, now - since)
  else if (pressure >= mostPressure) endWorst()
}

/** The lock changes hands so often that the agent is never seen to stand still, and hardly gets on. */
function endWorst() {
  const [holder, times] = [...found].reduce((worst, each) => (each[1] > worst[1] ? each : worst))
  found.delete(holder)
  pressure /= 2
  tell(holder, times * lookMs)
}

function holderThere() {
  const fd = parseInt(read(thread + 'syscall').split(' ')[1], 16)
  return holders.get(byDescriptor.get(fd)) ?? current
}

function tell(holder, waitedMs) {
  alertUntil = performance.now() + alertForMs
  // Before it is ended, so that the agent hears of this before it hears of that.
  if (toldOf !== holder.number) parentPort.postMessage({ number: holder.number, waitedMs })
  toldOf = holder.number
  endAll(holder)
}

function isAtPipe() {
  const at = attempt(() => text.latin1Slice(0, readSync(place, text, 0, text.length, 0))) ?? ''
  if (/pipe|fifo/.test(at)) return true
  if (at !== '' && at !== '0') return false
  return / D /.test(read(thread + 'stat').replace(/.*\\)/s, ''))
}

function endAll({ group, uid, folder, pipes }) {
  if (folder !== undefined) attempt(() => writeFileSync(folder + '/cgroup.kill', '1'))
  kill(-group)
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    if (!(pid > 1) || pid === process.pid) continue
    if (uid === undefined ? hasOneOf(pid, pipes) : isOf(pid, uid)) kill(pid)
  }
}

function isOf(pid, uid) {
  return (/^Uid:(.*)/m.exec(read('/proc/' + pid + '/status'))?.[1] ?? '').split('\\t').includes(String(uid))
}

function hasOneOf(pid, pipes) {
  const folder = '/proc/' + pid + '/fd/'
  const names = attempt(() => readdirSync(folder)) ?? []
  return names.some((fd) => {
    const found = attempt(() => statSync(folder + fd))
    return found !== undefined && pipes.some(({ dev, ino }) => dev === found.dev && ino === found.ino)
  })
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

setInterval(look, lookMs)`
