import { realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import type { Command } from 'commander'
import { ApiError } from '../../client/index.ts'
import type { Client } from '../../client/index.ts'
import { DESCRIPTOR_FILE } from '@windlass/shared/model/descriptor.ts'
import type { SourceFile, Workflow, WorkflowVersion } from '@windlass/shared/model/workflow.ts'
import { Failure } from '../failure.ts'
import { quoted } from '../next-page.ts'
import { during } from '../progress.ts'
import { does } from '../session.ts'
import type { Session } from '../session.ts'
import { behindBar, bytesText, note, paint, print } from '../terminal.ts'

export interface Package {
  slug: string
  files: SourceFile[]
  warnings: string[]
}

// Bundling and deriving the schemas takes seconds; a slow line takes minutes for the largest package.
const DEADLINE_MS = 300_000

export function addDeploy(program: Command): void {
  const command = program
    .command('deploy')
    .description('Deploy the workflow in a folder: a new one, or a new version of one that exists.')
    .argument('[folder]', `the folder that holds ${DESCRIPTOR_FILE}`, '.')
    .option('--no-promote', 'do not make the new version current: runs take it only when they name it')
    .addHelpText('after', HELP)
  does(command, async (session, [folder = '.'], options) => {
    const { client, progress } = session
    const packed = await during(progress, 'packing', packFolder(folder))
    if (options['promote'] === false) {
      const { version } = await during(progress, `deploying ${packed.slug}`, createVersion(client, packed))
      return tellVersion(session, packed, version)
    }
    const answer = await during(progress, `deploying ${packed.slug}`, createOrUpdate(client, packed))
    return tell(session, packed, answer)
  })
}

const HELP = `
All text files of the folder are sent, without node_modules, dist, coverage, lock files and names that begin with a dot.
npm packages that the program imports are bundled along; native addons and binaries are refused.
  windlass deploy            this folder
  windlass deploy hello      another one
  windlass deploy --no-promote      a version to try: windlass workflows promote makes it current`

/** Everything that a deployed workflow consists of. */
export async function packFolder(given: string): Promise<Package> {
  const folder = await folderOf(given)
  // These pull in esbuild; other commands start without it.
  const [{ readOutline }, { collectFiles }, { scanImports }, { vendorPackages }] = await Promise.all([
    import('../deploy/read-descriptor.ts'),
    import('../deploy/collect.ts'),
    import('../deploy/scan.ts'),
    import('../deploy/vendor.ts'),
  ])
  const { slug, entry } = await readOutline(folder)
  await assertEntry(folder, entry)
  const { sources, packages } = await scanImports(folder, entry)
  const collected = await collectFiles(folder, sources)
  // A bundle that lies in the folder already is the author's own choice.
  const own = new Set(collected.files.map((file) => file.path))
  const wanted = new Map([...packages].filter(([specifier]) => !own.has(`vendor/${specifier}.mjs`)))
  const vendored = await vendorPackages(folder, wanted)
  const made = vendored.files.filter((file) => !own.has(file.path))
  return { slug, files: [...collected.files, ...made], warnings: [...collected.warnings, ...vendored.warnings] }
}

async function folderOf(given: string): Promise<string> {
  const full = path.resolve(given)
  const found = await stat(full).catch(() => undefined)
  if (found?.isDirectory()) return realpath(full)
  const what = found ? 'is a file, not a folder' : 'does not exist'
  throw new Failure(`${full} ${what}.`, `windlass deploy path/to/workflow, the folder that holds ${DESCRIPTOR_FILE}`)
}

async function assertEntry(folder: string, entry: string): Promise<void> {
  const found = await stat(path.join(folder, entry)).catch(() => undefined)
  if (found?.isFile()) return
  throw new Failure(
    `The entry ${entry} is not in ${folder}.`,
    `write ${entry} with an exported \`run\`, or name another \`entry\` in ${DESCRIPTOR_FILE}`,
  )
}

export type Deployed = { workflow: Workflow; version: WorkflowVersion }

export async function createOrUpdate(
  client: Client,
  { slug, files }: Package,
  signal?: AbortSignal,
): Promise<Deployed> {
  const options = { deadlineMs: DEADLINE_MS, signal }
  const update = () => client.workflows.update({ workflow: slug, files }, options)
  const updated = await unless('NOT_FOUND', update)
  if (updated) return updated
  const created = await unless('WORKFLOW_EXISTS', () => client.workflows.create({ files }, options))
  // Somebody else created it in between.
  return created ?? update()
}

function createVersion(client: Client, { slug, files }: Package) {
  return client.workflows.createVersion({ workflow: slug, files }, { deadlineMs: DEADLINE_MS })
}

/** The answer, or nothing when the refusal has this code. */
async function unless<T>(code: string, call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call()
  } catch (error) {
    if (error instanceof ApiError && error.code === code) return undefined
    throw error
  }
}

async function tellVersion(session: Session, packed: Package, version: WorkflowVersion): Promise<void> {
  tellWarnings(packed, version)
  await session.answer({ version }, () => {
    const { slug } = version.workflow
    const number = version.version
    print(`Deployed ${slug}, version ${number}, which is not current`)
    note(`Next: windlass run ${slug} --workflow-version ${number}; windlass workflows promote ${slug} ${number}`)
  })
}

function tellWarnings(packed: Package, version: WorkflowVersion): void {
  for (const warning of [...packed.warnings, ...version.warnings])
    note(paint('yellow', behindBar(`warning: ${warning}`, process.stderr)))
}

async function tell(session: Session, packed: Package, answer: Deployed): Promise<void> {
  const { sampleOf, schemaText } = await import('../schema-text.ts')
  const { workflow, version } = answer
  const bytes = packed.files.reduce((sum, file) => sum + Buffer.byteLength(file.content), 0)
  tellWarnings(packed, version)
  await session.answer(answer, () => {
    print(`Deployed ${workflow.slug}, version ${version.version} (${packed.files.length} files, ${bytesText(bytes)})`)
    print(`  input   ${schemaText(version.inputSchema)}`)
    print(`  output  ${schemaText(version.outputSchema)}`)
    const sample = sampleOf(version.inputSchema)
    const input = sample === undefined ? '' : ` --input ${quoted(JSON.stringify(sample))}`
    note(`Next: windlass run ${workflow.slug}${input}`)
  })
}
