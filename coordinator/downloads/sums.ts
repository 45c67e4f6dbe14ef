import { access, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** The file of checksums, as `sha256sum --check` reads it. */
export const SUMS = 'SHA256SUMS'

const LINE = /^(?<sum>[0-9a-f]{64}) [ *](?<name>\S+)$/

export function sumsText(sums: ReadonlyMap<string, string>): string {
  return [...sums]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, sum]) => `${sum}  ${name}\n`)
    .join('')
}

/** SHA-256 in hex, by name of the file. */
export function readSums(text: string): Map<string, string> {
  return new Map(
    text.split('\n').flatMap((line) => {
      const { name, sum } = LINE.exec(line)?.groups ?? {}
      return name !== undefined && sum !== undefined ? [[name, sum] as const] : []
    }),
  )
}

/** Whether the checksums are there, and every file that they name. */
export async function isWhole(folder: string): Promise<boolean> {
  try {
    const sums = readSums(await readFile(join(folder, SUMS), 'utf8'))
    await Promise.all([...sums.keys()].map((name) => access(join(folder, name))))
    return sums.size > 0
  } catch {
    return false
  }
}
