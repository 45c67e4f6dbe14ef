import { after, before } from 'node:test'
import type { Database } from '@windlass/coordinator/db/client.ts'
import { testDatabase } from '../../../coordinator/test/_kit/database.ts'
import { type Instance, makeHome, startInstance } from './instance.ts'
import { deploy, programFiles } from './runs.ts'

export interface FileInstanceOptions {
  env?: Record<string, string>
  /** Programs to be deployed before the first test. */
  programs: readonly string[]
  /** Called when it serves. Hooks of a file run beside each other, so another one would find no instance. */
  onceUp?: (instance: Instance) => Promise<void>
  /** Called before the instance is stopped, with all that the tests left in it. */
  beforeStop?: (instance: Instance) => Promise<void>
}

export interface FileInstance {
  current: () => Instance
  database: () => Database
}

/**
 * One instance for all tests of a file, over a PostgreSQL that is there already: the way of WINDLASS_DATABASE_URL. It is
 * stopped after the last test, which fails when anything is left of it.
 */
export function fileInstance({ env, programs, onceUp, beforeStop }: FileInstanceOptions): FileInstance {
  const temp = makeHome()
  let database: Database | undefined
  let instance: Instance | undefined

  before(async () => {
    database = await testDatabase()
    const settings = { WINDLASS_DATABASE_URL: database.url, WINDLASS_START_EXAMPLE: 'false', ...env }
    const { client } = (instance = await startInstance({ home: temp.home, env: settings }))
    await Promise.all(programs.map((name) => deploy(client, programFiles(name))))
    await onceUp?.(instance)
  })

  after(async () => {
    try {
      if (instance) await beforeStop?.(instance)
      await instance?.stop()
    } finally {
      temp.remove()
      await database?.close()
    }
  })

  return {
    current() {
      if (!instance) throw new Error('the instance is there from the first test on')
      return instance
    },
    database() {
      if (!database) throw new Error('the database is there from the first test on')
      return database
    },
  }
}
