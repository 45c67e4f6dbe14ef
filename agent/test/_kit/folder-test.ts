import { test } from 'node:test'
import { aFolder } from './an-agent.ts'

/** A test with a folder of its own. */
export function folderTest(name: string, body: (folder: string) => Promise<void>): void {
  test(name, async () => {
    const { folder, remove } = await aFolder()
    try {
      await body(folder)
    } finally {
      await remove()
    }
  })
}
