import path from 'node:path'
import type { Command } from 'commander'
import type { KeySource, Rotated } from '@windlass/coordinator/admin/secrets.ts'
import { Failure } from '../failure.ts'
import { note, print } from '../terminal.ts'
import { localKeyFile } from './admin-database.ts'
import { type AdminCall, doesAdmin } from './admin-flags.ts'

const ROTATE = 'windlass admin secrets rotate-key'
const RETIRE = `${ROTATE} --retire`

const HELP = `
With a file of keys (WINDLASS_SECRET_KEY_FILE, or that of the local instance) a new key is put on top of it. Coordinators read it again
by themselves; on several hosts all must see the same file. Keys in WINDLASS_SECRET_KEY are changed by hand: put the new one in front,
start the coordinators again, then seal anew. May be stopped at any time and called again.
Examples: ${ROTATE}
          ${RETIRE}`

/** `windlass admin secrets` */
export function addAdminSecrets(group: Command): void {
  const command = group
    .command('rotate-key')
    .description('Seal all secrets with a new key, while coordinators run.')
    .option('--key-file <file>', 'the file of keys that the coordinators read')
    .option('--retire', 'make no new key: take those out of the file that no secret is sealed with any more')
    .addHelpText('after', HELP)
  doesAdmin(
    command,
    ROTATE,
    (flags) => sourceOf(command.optsWithGlobals<KeyFlags>(), flags.databaseUrl),
    (call, source) => (command.opts<KeyFlags>().retire ? retire(call, source) : rotate(call, source)),
  )
}

interface KeyFlags {
  keyFile?: string
  retire?: boolean
}

function sourceOf({ keyFile, retire }: KeyFlags, databaseUrl: string | undefined): KeySource {
  const given = process.env['WINDLASS_SECRET_KEY']
  if (keyFile === undefined && given) return { given }
  const file = keyFile ?? (process.env['WINDLASS_SECRET_KEY_FILE'] || undefined) ?? localKeyFile(databaseUrl)
  if (file !== undefined) {
    if (retire) refuseOddPair(file, databaseUrl)
    return { file: path.resolve(file) }
  }
  throw new Failure(
    'No keys are named.',
    `${ROTATE} --key-file <the file of WINDLASS_SECRET_KEY_FILE>, ` +
      'or with WINDLASS_SECRET_KEY as the coordinators have it',
  )
}

/** A file that was named says nothing of the database that happens to be found in a folder above. */
function refuseOddPair(file: string, databaseUrl: string | undefined): void {
  if (databaseUrl !== undefined || process.env['WINDLASS_DATABASE_URL']) return
  const found = localKeyFile(databaseUrl)
  if (found !== undefined && path.resolve(found) === path.resolve(file)) return
  throw new Failure(
    `The file of keys ${file} was named, and the database was only found: they may not belong together.`,
    `${RETIRE} --database-url <the database of these keys>`,
  )
}

async function rotate({ admin, session }: AdminCall, source: KeySource): Promise<void> {
  const { rotateKey } = await import('@windlass/coordinator/admin/secrets.ts')
  const rotated = await rotateKey(admin, source)
  await session.answer(rotated, () => tell(rotated, source))
}

function tell({ key, isNewKey, resealed, broken, missing, unused }: Rotated, source: KeySource): void {
  print(key)
  const secrets = resealed === 1 ? '1 secret' : `${resealed} secrets`
  if (isNewKey) note(`Made the key ${key} and sealed ${secrets} with it.`)
  else if ('given' in source) note(`Sealed ${secrets} with the key ${key}, the first of WINDLASS_SECRET_KEY.`)
  else note(`An earlier rotation had not come to its end: sealed ${secrets} with its key ${key}.`)
  for (const { orgId, environment, name } of broken)
    note(`${name} of ${orgId}${environment && `/${environment}`} does not open: its row was changed. Set it again.`)
  for (const { fingerprint, secrets } of missing)
    note(
      `${secrets} are sealed with the key ${fingerprint}, which is not here. ` +
        'Add it and call this again, or set them again.',
    )
  if (unused.length === 0) return
  const keys = unused.join(', ')
  const which = `Nothing is sealed with ${keys} any more; copies of the database from before need it still.`
  note(`${which} To take it out: ${'file' in source ? RETIRE : 'change WINDLASS_SECRET_KEY'}`)
}

async function retire({ admin, session }: AdminCall, source: KeySource): Promise<void> {
  if (!('file' in source)) throw new Failure('Keys in WINDLASS_SECRET_KEY are taken out by hand.', ROTATE)
  const { retireKeys } = await import('@windlass/coordinator/admin/secrets.ts')
  const { removed, kept, aside } = await retireKeys(admin, source.file)
  await session.answer({ removed, kept, aside }, () => {
    for (const key of removed) print(key)
    note(
      removed.length === 0 ? 'Every key but the first is used.' : `Taken out: ${removed.length}. Left: ${kept.length}.`,
    )
    if (aside !== null) note(`What was taken out is in ${aside}: remove it when no copy of the database needs it.`)
  })
}
