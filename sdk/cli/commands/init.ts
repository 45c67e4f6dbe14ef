import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { Slug } from '@windlass/shared/ids.ts'
import { ApiError } from '../../client/index.ts'
import { Failure } from '../failure.ts'
import { quoted } from '../next-page.ts'
import { sdkDependencies } from '../sdk-packages.ts'
import type { SdkDependencies } from '../sdk-packages.ts'
import { does } from '../session.ts'
import type { Session } from '../session.ts'
import { note, print } from '../terminal.ts'

const TEMPLATE = fileURLToPath(new URL('../../templates/hello', import.meta.url))
const SDK = fileURLToPath(new URL('../..', import.meta.url))
const DEFAULT_URL = 'http://127.0.0.1:8787'
const SAMPLE = `'{"names":["Ada"]}'`

const HELP = `
  windlass init hello            makes the folder hello with a workflow of that name
  windlass init                  in this folder, which must be empty

Outside of a checkout its package.json names the packages of the service, \`windlass\` and \`windlass-cli\`: after
\`npm install\` editors know the types, and \`npx --no-install windlass\` is the command. No other registry is needed.
Where no service answers they are left out; \`windlass upgrade-sdk\` adds them.`

export function addInit(program: Command): void {
  const command = program
    .command('init')
    .description('Make a folder with a workflow that runs, to begin with.')
    .argument('[folder]', 'a new or an empty folder', '.')
    .option('--slug <slug>', 'the name of the workflow; that of the folder when left out')
    .addHelpText('after', HELP)
  does(command, async (session, [given = '.'], options) => {
    const folder = path.resolve(given)
    const slug = slugFor(folder, options['slug'] as string | undefined)
    await refuseFilled(folder)
    await mkdir(folder, { recursive: true })
    const sdk = isFound(folder, 'windlass/package.json') ? undefined : await offeredBy(session)
    const schema = `${addressOf(session)}/schemas/workflow.json`
    const files = await writeTemplate(folder, { slug, schema }, sdk)
    const { addresses = {} } = sdk ?? {}
    await session.answer({ folder, slug, files, dependencies: addresses }, () => {
      print(`Made ${slug} in ${folder}`)
      print(`  ${files.join('  ')}`)
      const where = given === '.' ? '' : ` ${quoted(given)}`
      if (sdk) note(`Next: ${where && `cd${where} && `}npm install    # types for your editor, and the command`)
      // Elsewhere npx would ask the public registry for a package of this name.
      const [cli, at] = sdk ? ['npx --no-install windlass', ''] : ['windlass', where]
      note(`${sdk ? '     ' : 'Next:'} ${cli} dev${at} --input ${SAMPLE}`)
      note(`      ${cli} deploy${at}`)
      note(`      ${cli} run ${slug} --input ${SAMPLE}`)
    })
  })
}

/** `My Workflow` → `my-workflow`. */
function slugFor(folder: string, given: string | undefined): string {
  const guess = path
    .basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 63)
    .replace(/^-+|-+$/g, '')
  const parsed = Slug.safeParse(given ?? guess)
  if (parsed.success) return parsed.data
  const why = parsed.error.issues[0]?.message ?? 'is none'
  throw new Failure(`\`${given ?? path.basename(folder)}\` ${why}.`, 'windlass init --slug my-workflow')
}

/** Nobody's files are written over. A repository that was just made is empty. */
async function refuseFilled(folder: string): Promise<void> {
  const found = await stat(folder).catch(() => undefined)
  if (!found) return
  if (!found.isDirectory()) throw new Failure(`${folder} is a file.`, 'windlass init my-workflow')
  const names = (await readdir(folder)).filter((name) => name !== '.git')
  if (names.length === 0) return
  const some = names.slice(0, 3).join(', ')
  throw new Failure(
    `${folder} is not empty: it has ${some}${names.length > 3 ? ' …' : ''}.`,
    'windlass init my-workflow',
  )
}

/** Where editors find the schema of the descriptor. No service is needed to begin. */
function addressOf(session: Session): string {
  try {
    return session.settings.url
  } catch (error) {
    if (error instanceof Failure) return DEFAULT_URL
    throw error
  }
}

/** The packages of the service; undefined where there is none, or an older one that has none. */
async function offeredBy(session: Session): Promise<SdkDependencies | undefined> {
  try {
    return await sdkDependencies(session)
  } catch (error) {
    if (error instanceof Failure || error instanceof ApiError) return undefined
    throw error
  }
}

async function writeTemplate(
  folder: string,
  values: Record<string, string>,
  sdk: SdkDependencies | undefined,
): Promise<string[]> {
  const names = await readdir(TEMPLATE)
  for (const name of names) {
    const text = await readFile(path.join(TEMPLATE, name), 'utf8')
    const filled = text.replace(/\{\{(\w+)\}\}/g, (all, key: string) => values[key] ?? all)
    await put(folder, name, name === 'package.json' ? withDependencies(filled, sdk) : filled)
  }
  await put(folder, 'tsconfig.json', `${JSON.stringify(tsconfig(folder, sdk), null, 2)}\n`)
  return [...names, 'tsconfig.json'].sort()
}

function put(folder: string, name: string, text: string): Promise<void> {
  return writeFile(path.join(folder, name), text, { flag: 'wx' })
}

function withDependencies(manifest: string, sdk: SdkDependencies | undefined): string {
  if (!sdk) return manifest
  const { windlass, 'windlass-cli': cli } = sdk.addresses
  const more = { dependencies: { windlass }, devDependencies: { 'windlass-cli': cli } }
  return `${JSON.stringify({ ...(JSON.parse(manifest) as object), ...more }, null, 2)}\n`
}

/** For editors alone: deploying needs none of it. */
function tsconfig(folder: string, sdk: SdkDependencies | undefined): object {
  const compilerOptions = {
    target: 'es2024',
    module: 'esnext',
    moduleResolution: 'bundler',
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    erasableSyntaxOnly: true,
    ...(sdk ? {} : typesOf(folder)),
  }
  return { compilerOptions, include: ['**/*.ts'] }
}

/** Where the types are without packages of its own. Those bring the types of Node along. */
function typesOf(folder: string): object {
  const node = isFound(folder, '@types/node/package.json') ? { types: ['node'] } : {}
  return isFound(folder, 'windlass/package.json') ? node : typesHere()
}

/** Whether a file of a package is found from there, as inside of a checkout. */
function isFound(folder: string, file: string): boolean {
  try {
    createRequire(path.join(folder, 'index.ts')).resolve(file)
    return true
  } catch {
    return false
  }
}

/** Where a checkout has the types: beside the folder nothing has. The package of the command has none. */
function typesHere(): object {
  const sdk = path.join(SDK, 'index.ts')
  if (!existsSync(sdk)) return {}
  const node = path.dirname(path.dirname(createRequire(import.meta.url).resolve('@types/node/package.json')))
  return { types: ['node'], paths: { windlass: [sdk] }, typeRoots: [node] }
}
