import { createLog, watchUncaught } from '@windlass/shared/log.ts'
import { readConfig, readSystemd } from './config.ts'
import { startCoordinator } from './start.ts'
import { sayAlive } from './watchdog.ts'

/** EX_CONFIG of sysexits.h: the settings are wrong, starting again will not help. */
const BAD_CONFIG = 78
const STOP_MS = 15_000

const log = createLog({ process: 'coordinator' })
watchUncaught((error) => log.error('coordinator.failed', { error }))

function readConfigOrExit() {
  try {
    return readConfig()
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
    return process.exit(BAD_CONFIG)
  }
}

async function startOrExit() {
  try {
    return await startCoordinator(readConfigOrExit())
  } catch (error) {
    log.error('coordinator.failed', { error })
    return process.exit(1)
  }
}

const coordinator = await startOrExit()
// A supervisor that gave us a channel learns the port by it, and its end is ours too: nobody else would restart or stop
// us.
process.send?.({ ready: true, port: coordinator.port })
sayAlive(log, readSystemd())

let stopping = false
async function stop(why: string, code = 0) {
  if (stopping) return
  stopping = true
  log('coordinator.stopping', { why })
  setTimeout(() => {
    log.warn('coordinator.stop.cut', { afterMs: STOP_MS, reason: 'something does not end, such as a silent database' })
    process.exit(1)
  }, STOP_MS).unref()
  await coordinator.stop()
  log('coordinator.stopped')
  process.exit(code)
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal))
process.on('disconnect', () => void stop('supervisor gone'))
void coordinator.outgrown.then((why) => {
  if (why !== undefined) log.error('coordinator.outgrown', { reason: why })
  return why === undefined ? undefined : stop('database outgrown', 1)
})
