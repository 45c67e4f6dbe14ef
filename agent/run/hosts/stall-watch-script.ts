/**
 * A part of the code of the thread that `pipe-watch.ts` tells about. It looks at all tasks of the agent: its first
 * thread, and those of the pool. A program can hold the lock of any file or folder that it may open, as when it reads a
 * folder into memory that is a file of a file system (FUSE) of its own, which does not answer. Whoever wants that lock,
 * as to remove the workspace of another run, waits in the kernel meanwhile, and no signal ends that.
 *
 * Nothing says for whom a task waits, and a slow disk looks the same. So this leads to something only while somebody
 * waits for file systems of users of our runs: those awaited at each look since then are ended first, later any.
 */
export const STALL_WATCH_SCRIPT = `
const CONNECTIONS = '/sys/fs/fuse/connections/'
/** Tasks that waited at the last look: what they had executed, and how long they stand. */
let stalls = new Map()
/** Owners of the file systems that somebody waited for at each look since a task stands. */
let steady
let stallPressure = 0, isMountTried = false

function lookAtTasks(passedMs) {
  stalls = stallsAfter(passedMs)
  const stoodMs = Math.max(0, ...[...stalls.values()].map((each) => each.stoodMs))
  stallPressure = Math.max(0, stallPressure + (stoodMs > 0 ? 1 : -1))
  if (stoodMs === 0) {
    steady = undefined
    return
  }
  const owners = awaitedOwners()
  steady = steady ? owners.filter((each) => steady.includes(each)) : owners
  // Holders may take turns, so that tasks execute for a moment in between.
  const isLong = stoodMs >= longStallMs || stallPressure >= mostPressure
  if (stoodMs >= stallMs || isLong) for (const owner of isLong ? owners : steady) endOwner(owner, stoodMs)
}

function stallsAfter(passedMs) {
  const found = new Map()
  for (const task of namesIn('/proc/self/task')) {
    const folder = '/proc/self/task/' + task + '/'
    if (!isUninterruptible(folder)) continue
    const executed = executedSoFar(folder), known = stalls.get(task)
    const isStill = executed !== undefined && executed === known?.executed
    found.set(task, { executed, stoodMs: isStill ? known.stoodMs + passedMs : 0 })
  }
  return found
}

function awaitedOwners() {
  if (!runs) return []
  return [...new Set(connections().filter((each) => isOfRuns(each) && isAwaited(each)).map(({ owner }) => owner))]
}

/** The agent is free at once by its file systems, and hears of it before the run ends. */
function endOwner(owner, waitedMs) {
  parentPort.postMessage({ owner })
  const holder = [...holders.values()].find(({ uid }) => uid === owner)
  if (holder) report(holder, waitedMs, 'file')
  endFileSystems(owner, false)
  endAll(holder ?? { uid: owner })
}

/**
 * One that waits for a file system of FUSE is ended by no signal, and keeps the lock: see \`fuse.ts\`. Those of its
 * user end with it; of other runs those that somebody waits for, when that was not enough.
 */
function endFileSystems(uid, isLong) {
  for (const each of connections()) {
    const isOthers = isLong && isOfRuns(each)
    if (each.owner !== uid && !(isOthers && isAwaited(each))) continue
    const isEnded = attempt(() => (writeFileSync(CONNECTIONS + each.name + '/abort', '1'), true))
    if (isEnded && each.owner !== uid) parentPort.postMessage({ owner: each.owner })
  }
}

/** The folder is there when the kernel knows FUSE. Nearly always systemd has mounted what is in it. */
function connections() {
  const isThere = read('/proc/self/mountinfo').includes(' /sys/fs/fuse/connections ')
  if (!isThere && !isMountTried && attempt(() => statSync(CONNECTIONS))) {
    isMountTried = true
    spawnSync(mount, ['-t', 'fusectl', 'fusectl', CONNECTIONS], { stdio: 'ignore', timeout: mountMs })
  }
  const names = attempt(() => readdirSync(CONNECTIONS)) ?? []
  return names.map((name) => ({ name, owner: attempt(() => statSync(CONNECTIONS + name).uid) }))
}

function isOfRuns({ owner }) {
  return owner >= runs?.first && owner <= runs?.last
}

function isAwaited({ name }) {
  return Number(read(CONNECTIONS + name + '/waiting')) > 0
}
`
