/** The folder of migrations: `0001-runs.sql`, `0002-…`, without a gap, never changed once they have been applied anywhere. */
import { createHash } from 'node:crypto'
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'

export interface Migration {
  number: number
  /** As in the file's name, without number and ending. */
  name: string
  file: string
  text: string
  checksum: string
  /** `-- online`: run outside of a transaction, as `create index concurrently` wants it. One statement only. */
  online: boolean
  /** `-- breaking`: programs that do not know it cannot work on the database any more. */
  breaking: boolean
}

/** First migration of the previews, whose schema ours does not continue. */
const PREVIEW = 'spine'

/** Whether a preview made the database that has these migrations. */
export function isOfPreview([first]: readonly { number: number; name: string }[]): boolean {
  return first?.number === 1 && first.name === PREVIEW
}

export const MADE_BY_PREVIEW = 'The database was made by a preview of Windlass, and its data cannot be taken over'

const NAME = /^(\d{4})-([a-z0-9]+(?:-[a-z0-9]+)*)\.sql$/

export async function readMigrations(folder: string): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort()
  const migrations = await Promise.all(names.map((name) => readMigration(folder, name)))
  migrations.forEach(({ number, file }, index) => {
    if (number === index + 1) return
    const expected = String(index + 1).padStart(4, '0')
    throw new Error(
      `Migration ${file} in ${folder} should have the number ${expected}: every number is used once and none is left out.`,
    )
  })
  return migrations
}

async function readMigration(folder: string, file: string): Promise<Migration> {
  const [, number, name] = NAME.exec(file) ?? []
  if (!number || !name) throw new Error(`Migration ${file} in ${folder} needs a name like 0007-run-tags.sql.`)
  // A checkout with other line ends is the same migration.
  const text = (await readFile(join(folder, file), 'utf8')).replaceAll('\r\n', '\n')
  const marks = leadingComments(text)
  return {
    number: Number(number),
    name,
    file,
    text,
    checksum: createHash('sha256').update(text).digest('hex'),
    online: marks.includes('-- online'),
    breaking: marks.includes('-- breaking'),
  }
}

function leadingComments(text: string): string[] {
  const lines = text.split('\n').map((line) => line.trim())
  const end = lines.findIndex((line) => !line.startsWith('--'))
  return end === -1 ? lines : lines.slice(0, end)
}
