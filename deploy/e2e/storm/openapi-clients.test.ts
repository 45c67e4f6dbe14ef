import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { copyFile, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { createRequire, findPackageJSON } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { type TestCoordinator, aCoordinatorOfItsOwn } from '@windlass/coordinator/test/_kit/coordinator.ts'
import { aWorkflow } from '@windlass/coordinator/test/_kit/workflow.ts'
import { PROJECT } from '../../tools/source-files.ts'

const run = promisify(execFile)
const DEADLINE_MS = 60_000
const CLIENTS = path.join(import.meta.dirname, '../../test/fixtures/openapi-clients')
const DOCUMENT = 'openapi.json'

let coordinator: TestCoordinator
let folder: string
before(async () => {
  coordinator = await aCoordinatorOfItsOwn()
  await aWorkflow(coordinator, { slug: 'greet' })
  folder = await mkdtemp(path.join(tmpdir(), 'windlass-clients-'))
  const response = await fetch(`${coordinator.url}/v1/openapi.json`)
  assert.equal(response.status, 200)
  await writeFile(path.join(folder, DOCUMENT), await response.text())
  await writeFile(path.join(folder, 'package.json'), '{ "type": "module" }')
  await symlink(path.join(PROJECT, 'node_modules'), path.join(folder, 'node_modules'))
})
after(async () => {
  await coordinator?.stop()
  if (folder) await rm(folder, { recursive: true, force: true })
})

/** A package's command line, as its users call it. */
function bin(name: string): string {
  const manifest = findPackageJSON(name, import.meta.url)
  if (manifest === undefined) throw new Error(`${name} is not installed`)
  const { bin } = JSON.parse(readFileSync(manifest, 'utf8')) as { bin: string | Record<string, string> }
  return path.join(path.dirname(manifest), typeof bin === 'string' ? bin : Object.values(bin)[0]!)
}

function node(...args: string[]) {
  const { url, apiKey } = coordinator
  const env = { ...process.env, WINDLASS_URL: url, WINDLASS_API_KEY: apiKey, WINDLASS_ORG: 'default' }
  return run(process.execPath, args, { cwd: folder, env, timeout: DEADLINE_MS }).catch(
    (error: Error & { stdout?: string; stderr?: string }) => {
      throw new Error(`${args.join(' ')} failed:\n${error.stdout}\n${error.stderr}`)
    },
  )
}

/** Everything that `strict` leaves open besides. */
const STRICT = [
  'strict',
  'noUncheckedIndexedAccess',
  'noImplicitOverride',
  'noImplicitReturns',
  'noFallthroughCasesInSwitch',
  'noPropertyAccessFromIndexSignature',
  'verbatimModuleSyntax',
  'erasableSyntaxOnly',
]

async function typeCheck(files: readonly string[], more: readonly string[]): Promise<void> {
  const flags = Object.fromEntries([...STRICT, ...more].map((name) => [name, true]))
  const compilerOptions = {
    ...flags,
    target: 'es2024',
    module: 'nodenext',
    lib: ['es2024', 'dom', 'dom.iterable'],
    types: ['node'],
    noEmit: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
  }
  await writeFile(path.join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))
  await node(path.join(PROJECT, 'node_modules/typescript/bin/tsc'), '-p', '.')
}

async function execute(client: string): Promise<unknown> {
  const { stdout } = await node('--disable-warning=ExperimentalWarning', client)
  return JSON.parse(stdout) as unknown
}

const SEEN = {
  started: [201, 201, 201],
  again: { status: 200, isSame: true },
  listed: 2,
  attempt: 1,
  events: ['1 run.queued'],
  variable: 'hello',
  cancelled: 'cancelled',
  gone: '404 NOT_FOUND',
  wrong: '400 priority',
}

test('a client made by openapi-typescript compiles strictly and works', async () => {
  await node(bin('openapi-typescript'), DOCUMENT, '-o', 'schema.ts')
  await copyFile(path.join(CLIENTS, 'openapi-fetch.ts'), path.join(folder, 'openapi-fetch.ts'))
  await typeCheck(['openapi-fetch.ts', 'schema.ts'], ['exactOptionalPropertyTypes'])
  assert.deepEqual(await execute('openapi-fetch.ts'), SEEN)
})

test('a client made by oazapfts compiles strictly and works', async () => {
  await node(bin('oazapfts'), DOCUMENT, 'api.ts', '--useUnknown')
  await copyFile(path.join(CLIENTS, 'oazapfts.ts'), path.join(folder, 'oazapfts.ts'))
  // Its own runtime does not stand `exactOptionalPropertyTypes`.
  await typeCheck(['oazapfts.ts', 'api.ts'], [])
  assert.deepEqual(await execute('oazapfts.ts'), SEEN)
})

interface Validator {
  validate(document: unknown): Promise<unknown>
}

test('the document is valid by the official schema of OpenAPI 3.1', async () => {
  // What oazapfts itself validates by, found from where it stands.
  const fromOazapfts = createRequire(createRequire(import.meta.url).resolve('oazapfts'))
  const parser = fromOazapfts('@apidevtools/swagger-parser') as Validator
  const fresh = async () =>
    (await (await fetch(`${coordinator.url}/v1/openapi.json`)).json()) as Record<string, unknown>
  await parser.validate(await fresh())
  const broken = await fresh()
  delete broken['info']
  await assert.rejects(parser.validate(broken), /info/)
})
