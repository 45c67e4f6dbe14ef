import { readFileSync } from 'node:fs'

interface Registries {
  passwd: string
  subuid: string
}

const REGISTRIES: Registries = { passwd: '/etc/passwd', subuid: '/etc/subuid' }

/**
 * Returns who has one of these user ids already: a user of this machine, or the containers of one. Users of a directory
 * service are not seen.
 */
export function ownerAmong(
  { first, last }: { first: number; last: number },
  { passwd, subuid } = REGISTRIES,
): string | undefined {
  for (const [name, , uid] of fieldsIn(passwd))
    if (Number(uid) >= first && Number(uid) <= last) return `User id ${uid} belongs to ${name} (${passwd}).`
  for (const [name, from, count] of fieldsIn(subuid)) {
    const end = Number(from) + Number(count) - 1
    if (Number(from) <= last && end >= first)
      return `User ids ${from}-${end} belong to containers of ${name} (${subuid}).`
  }
  return undefined
}

function fieldsIn(file: string): string[][] {
  const lines = textOf(file).split('\n')
  return lines.filter((line) => line.includes(':') && !line.startsWith('#')).map((line) => line.split(':'))
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
