import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Command } from 'commander'
import { applyEdits, modify, parse, printParseErrorCode } from 'jsonc-parser'
import type { ParseError } from 'jsonc-parser'
import { Failure } from '../failure.ts'
import { quoted } from '../next-page.ts'
import { sdkDependencies } from '../sdk-packages.ts'
import { does } from '../session.ts'
import { note, print } from '../terminal.ts'

const HELP = `
The service has the packages of its own version: \`windlass\`, which programs import, and \`windlass-cli\`, the command.
Their addresses name their content, so a lockfile stays true. Nothing is installed: npm, pnpm or yarn does that.
  windlass upgrade-sdk            the package.json of this folder
  windlass upgrade-sdk hello      that of another one`

/** Where a package is written that is not there yet. */
const SECTIONS = { windlass: 'dependencies', 'windlass-cli': 'devDependencies' } as const
const OTHERS = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'] as const

type Manifest = Partial<Record<(typeof OTHERS)[number], Record<string, unknown>>>

interface Change {
  name: string
  before: string | null
  now: string
}

export function addUpgradeSdk(program: Command): void {
  const command = program
    .command('upgrade-sdk')
    .description("Write the addresses of the service's packages for npm into package.json.")
    .argument('[folder]', 'the folder that holds package.json', '.')
    .addHelpText('after', HELP)
  does(command, async (session, [folder = '.']) => {
    const file = path.resolve(folder, 'package.json')
    const text = await readManifest(file)
    const manifest = parsed(text, file)
    const { version, addresses } = await sdkDependencies(session)
    const { changed, changes } = withAddresses(text, manifest, addresses)
    if (changed !== text) await writeFile(file, changed)
    await session.answer({ file, version, changes }, () => {
      for (const { name, before, now } of changes) print(`${name}  ${before === null ? '' : `${before} → `}${now}`)
      if (changes.length === 0) print(`${file} has the packages of version ${version} already`)
      else note(`Next: npm install${folder === '.' ? '' : ` --prefix ${quoted(folder)}`}`)
    })
  })
}

async function readManifest(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    throw new Failure(`There is no ${file}.`, 'windlass upgrade-sdk path/to/project, or windlass init my-workflow')
  }
}

/** The text with the addresses in it; all else of it stays as it is written. */
function withAddresses(text: string, manifest: Manifest, addresses: Record<keyof typeof SECTIONS, string>) {
  const formattingOptions = { insertSpaces: !/^\t/m.test(text), tabSize: /^( +)\S/m.exec(text)?.[1]?.length ?? 2 }
  const changes: Change[] = []
  let changed = text
  for (const name of ['windlass', 'windlass-cli'] as const) {
    const section = OTHERS.find((each) => manifest[each]?.[name] !== undefined) ?? SECTIONS[name]
    const before = manifest[section]?.[name]
    const now = addresses[name]
    if (before === now) continue
    changed = applyEdits(changed, modify(changed, [section, name], now, { formattingOptions }))
    changes.push({ name, before: typeof before === 'string' ? before : null, now })
  }
  return { changed, changes }
}

function parsed(text: string, file: string): Manifest {
  const errors: ParseError[] = []
  const value: unknown = parse(text, errors, { disallowComments: true })
  const [error] = errors
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!error && isObject) {
    for (const section of OTHERS) refuseOther(file, section, (value as Record<string, unknown>)[section])
    return value
  }
  const line = text.slice(0, error?.offset ?? 0).split('\n').length
  const why = error ? `is not JSON: ${printParseErrorCode(error.error)} in line ${line}` : 'holds no object'
  throw new Failure(`${file} ${why}.`, 'mend package.json, then windlass upgrade-sdk again')
}

function refuseOther(file: string, section: string, value: unknown): void {
  if (value === undefined || (typeof value === 'object' && value !== null && !Array.isArray(value))) return
  throw new Failure(
    `\`${section}\` of ${file} is no object.`,
    `write \`"${section}": {}\`, then windlass upgrade-sdk again`,
  )
}
