// Preloaded by the test runner: a test file that ends its process before its tests are over is red. Without it
// `process.exit(0)` in the middle hides all tests behind it.
import { after } from 'node:test'

const file = process.argv[1] ?? ''
// Processes that tests start may inherit how this one was started.
if (process.env.NODE_TEST_CONTEXT === 'child-v8' && /\.test\.m?[jt]s$|\/group-\d+\.mjs$/.test(file)) {
  let isOver = false
  after(() => void (isOver = true))
  process.on('exit', () => {
    if (isOver || process.exitCode) return
    process.stderr.write(`${file} ended its process before its tests were over\n`)
    process.exitCode = 1
  })
}
