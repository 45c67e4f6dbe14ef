import fs from 'node:fs/promises'
import type { TestContext } from 'node:test'
import { announce } from '@windlass/shared/test/_kit/until.ts'

/** Holds the removal of files with this in their path until the test lets go of them. */
export function holdUnlinks(t: TestContext, part: string) {
  const { promise, resolve: release } = Promise.withResolvers<void>()
  const unlink = fs.unlink
  let held = 0
  t.mock.method(fs, 'unlink', async (file: string | Buffer) => {
    if (!String(file).includes(part)) return unlink(file)
    held += 1
    announce()
    await promise
    return unlink(file)
  })
  t.after(() => release())
  return { release, held: () => held }
}
