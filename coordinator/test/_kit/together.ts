/** Executes test files one after the other in one process, so that they share what takes long to start. */
import { after, before, describe, test } from 'node:test'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { keepCoordinator } from './shared-coordinator.ts'

export interface Together {
  /** The files are named from here. */
  root: string
  files: readonly string[]
  /** For each file. */
  deadlineMs: number
}

/** So long after the last file the process has to have ended by itself. */
const LINGER_MS = 10_000

/**
 * A suite for each file, by the file's name: its hooks are the file's alone, its time is the file's time, and the next
 * file begins when it is over, or when its deadline is.
 */
export function executeTogether({ root, files, deadlineMs }: Together): void {
  const coordinator = keepCoordinator()
  after(async () => {
    await coordinator.end()
    setTimeout(endAnyway, Math.min(LINGER_MS, deadlineMs)).unref()
  })
  const turns = inTurn()
  for (const file of files) {
    describe(file, { timeout: deadlineMs }, async () => {
      // The first hook of the suite: those of the file come after it.
      before(() => coordinator.nextFile())
      // Files that load together are executed as one graph, and all their tests would go to one suite.
      const done = await turns()
      try {
        await import(pathToFileURL(join(root, file)).href)
      } catch (error) {
        // A test for it, as a suite that cannot be built leaves node:test's exit code at 0.
        test('the file can be loaded', () => {
          throw error
        })
      } finally {
        done()
      }
    })
  }
}

/** Else the process would stay until the deadline of all its files is over. */
function endAnyway(): void {
  const open = process.getActiveResourcesInfo().join(', ')
  process.stderr.write(`All files are over, but something of them keeps the process alive: ${open}\n`)
  process.exit(1)
}

/**
 * Answers when all that asked before are done. Each awaits a promise of its own: node:test finds the suite of a test by
 * what was awaited last, and another's promise would lead to the other's suite.
 */
function inTurn(): () => Promise<() => void> {
  const waiting: (() => void)[] = []
  let isTaken = false
  const done = () => {
    isTaken = false
    waiting.shift()?.()
  }
  return () =>
    new Promise((resolve) => {
      const begin = () => {
        isTaken = true
        resolve(done)
      }
      if (isTaken || waiting.length > 0) waiting.push(begin)
      else begin()
    })
}
