/** A part that says that it is alive, and stands still when its first start is told to. */
import { existsSync, writeFileSync } from 'node:fs'

const mark = process.env.STUCK_MARK!
const isFirst = !existsSync(mark)
process.send!({ ready: true, pid: process.pid })
process.on('disconnect', () => process.exit(0))
const timer = setInterval(() => process.send!({ alive: true }), 10)
// Without work: a machine that is busy already must not get busier.
if (isFirst)
  setTimeout(() => {
    writeFileSync(mark, '')
    process.on('SIGTERM', () => clearInterval(timer))
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  }, 100)
else process.on('SIGTERM', () => process.exit(0))
