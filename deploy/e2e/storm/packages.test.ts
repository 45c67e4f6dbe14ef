// The packages that a coordinator serves, used as on a laptop that has Node and npm, and neither a checkout nor a way
// to any registry.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { fileInstance } from '../_kit/file-instance.ts'
import { COMPILERS, otherMachine, type OtherMachine, type Said } from '../_kit/other-machine.ts'

const INPUT = '{"names":["Ada"]}'
/** The oldest Node that the packages are for. npm has it as a package, as it has the one of this project. */
const OLDEST = '20.20.2'

const root = mkdtempSync(join(tmpdir(), 'windlass-e2e-packages-'))
const { current } = fileInstance({ programs: [] })

after(() => rmSync(root, { recursive: true, force: true }))

function machine(name: string, node = process.execPath): OtherMachine {
  const home = join(root, name)
  mkdirSync(home)
  const { url, apiKey, org } = current().access
  return otherMachine(home, node, { WINDLASS_URL: url, WINDLASS_API_KEY: apiKey, WINDLASS_ORG: org })
}

function fine(said: Said): string {
  assert.equal(said.code, 0, `${said.stderr}\n${said.stdout}`)
  return said.stdout
}

async function addresses(): Promise<{ windlass: string; 'windlass-cli': string }> {
  const { url } = current().access
  const answer = await fetch(`${url}/downloads/packages.json`)
  const { files } = (await answer.json()) as { files: { windlass: string; 'windlass-cli': string } }
  const base = `${url}/downloads`
  return { windlass: `${base}/${files.windlass}`, 'windlass-cli': `${base}/${files['windlass-cli']}` }
}

/** From an empty folder to a run and its log. */
async function firstHour(on: OtherMachine, slug: string): Promise<string> {
  const { 'windlass-cli': cli } = await addresses()
  const made = fine(await on.npx(on.home, '--yes', cli, 'init', slug))
  assert.match(made, new RegExp(`^Made ${slug} in `))
  const folder = join(on.home, slug)
  fine(await on.npm(folder, 'install'))
  assert.match(fine(await on.npx(folder, '--no-install', 'windlass', '--version')), /^\d+\.\d+\.\d+\n$/)
  assert.match(
    fine(await on.npx(folder, '--no-install', 'windlass', 'deploy')),
    new RegExp(`^Deployed ${slug}, version 1 \\(5 files`),
  )
  const ran = fine(await on.npx(folder, '--no-install', 'windlass', 'run', slug, '--input', INPUT))
  assert.match(ran, /"Hello, Ada! It is /)
  const log = fine(await on.npx(folder, '--no-install', 'windlass', 'logs', slug, '-f'))
  assert.match(log, /▸ greet[^]*│ greeted Ada[^]*completed\n$/)
  assert.match(fine(await on.npx(folder, '--no-install', 'windlass', 'runs', 'list')), new RegExp(`${slug}@1`))
  return folder
}

test('init, install, deploy, run and logs in an empty folder with Node 22', async () => {
  await firstHour(machine('with-22'), 'with-22')
})

test(`the same with Node ${OLDEST}, and a script with the client`, async (t) => {
  const node = oldest(t)
  if (node === undefined) return
  const on = machine('with-20', node)
  assert.equal(fine(await on.run(on.home, 'node', '--version')), `v${OLDEST}\n`)
  const folder = await firstHour(on, 'with-20')
  writeFileSync(
    join(folder, 'script.mjs'),
    `import { createClient } from 'windlass/client'
     const { WINDLASS_URL: url, WINDLASS_API_KEY: apiKey } = process.env
     const client = createClient({ url, apiKey })
     const { run } = await client.runs.trigger({ workflow: 'with-20', input: { names: ['Grace'] } })
     for await (const { type } of client.follow(run.id)) console.log(type)
     const refused = await client.runs.get({ run: 'run_x' }).catch((error) => error)
     console.log(refused.name, refused.code)`,
  )
  const said = fine(await on.run(folder, 'node', 'script.mjs'))
  assert.match(said, /run\.running\n[^]*run\.completed\nApiError NOT_FOUND\n$/)
})

/** Nothing where the registry is not in reach; `.ci/run` has it. */
function oldest(t: TestContext): string | undefined {
  const name = `node-${process.platform}-${process.arch}`
  const folder = join(root, 'oldest')
  try {
    execFileSync('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', folder, `${name}@${OLDEST}`], {
      timeout: 120_000,
      stdio: 'pipe',
    })
  } catch (error) {
    if (process.env['CI'] !== undefined) throw error
    t.skip(`${name}@${OLDEST} is not to be had from npm's registry`)
    return undefined
  }
  return join(folder, 'node_modules', name, 'bin/node')
}

const PROGRAM = `
import { readFile } from 'node:fs/promises'
import { ApiError, createClient, type Client, type Run } from 'windlass/client'
import { requestInput, step, workflows } from 'windlass'

const client: Client = createClient({ url: 'http://127.0.0.1:8787', apiKey: process.env['KEY'] ?? '' })

export async function run(input: { name: string }): Promise<string> {
  const bytes = await step('read', async () => (await readFile(input.name)).byteLength)
  const answer = await requestInput({ prompt: 'Go on?', schema: { type: 'boolean' } })
  const size: number = bytes
  const isYes: boolean = answer
  await workflows.call('other', { size, isYes })
  const { run }: { run: Run } = await client.runs.trigger({ workflow: 'x', input: { size } })
  for await (const event of client.follow(run.id, { channels: ['log'] })) console.log(event.type, event.data['line'])
  try {
    await client.keys.revoke({ key: 'key_1' })
  } catch (error) {
    if (error instanceof ApiError && error.code === 'NOT_FOUND') return run.status
    throw error
  }
  // @ts-expect-error: a field that is not there
  await client.runs.trigger({ workflw: 'x' })
  // @ts-expect-error: a status is a text
  const status: number = run.status
  return String(status)
}
`

test('the types hold in strict TypeScript 5 and 7, declarations included', async () => {
  const on = machine('types')
  const { windlass } = await addresses()
  const folder = join(on.home, 'typed')
  mkdirSync(folder)
  writeFileSync(join(folder, 'index.ts'), PROGRAM)
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ private: true, type: 'module', dependencies: { windlass } }),
  )
  fine(await on.npm(folder, 'install'))
  const strict = ['--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess', '--skipLibCheck', 'false']
  for (const compiler of COMPILERS) {
    for (const module of ['nodenext', 'preserve']) {
      const options = ['--noEmit', '--target', 'es2024', '--module', module, ...strict]
      const said = await on.run(folder, 'node', compiler, ...options, 'index.ts')
      assert.deepEqual([said.code, said.stdout], [0, ''], `${compiler} ${module}`)
    }
  }
})

test('npm pack fetches a package as it is served, and the packed file installs too', async () => {
  const on = machine('packed')
  const { windlass, 'windlass-cli': cli } = await addresses()
  const packed = [windlass, cli].map(async (address) => {
    const [one] = JSON.parse(fine(await on.npm(on.home, 'pack', '--json', address))) as { filename: string }[]
    const served = Buffer.from(await (await fetch(address)).arrayBuffer())
    assert.ok(served.equals(readFileSync(join(on.home, one!.filename))), address)
    return `../${one!.filename}`
  })
  const folder = join(on.home, 'installed')
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  fine(await on.npm(folder, 'install', ...(await Promise.all(packed))))
  assert.match(fine(await on.npx(folder, '--no-install', 'windlass', '--help')), /upgrade-sdk/)
})

test('upgrade-sdk moves a project with a lockfile to the packages of the service', async () => {
  const on = machine('upgraded')
  const now = await addresses()
  // An earlier version, as another coordinator would have served it: the same files under a name of their own.
  const earlier = join(on.home, 'earlier.tgz')
  writeFileSync(earlier, Buffer.from(await (await fetch(now.windlass)).arrayBuffer()))
  const folder = join(on.home, 'project')
  mkdirSync(folder)
  const before = { private: true, type: 'module', dependencies: { windlass: `file:${earlier}` } }
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(before, null, 2)}\n`)
  fine(await on.npm(folder, 'install', '--save-dev', now['windlass-cli']))
  const said = fine(await on.npx(folder, '--no-install', 'windlass', 'upgrade-sdk'))
  assert.equal(said, `windlass  file:${earlier} → ${now.windlass}\n`)
  fine(await on.npm(folder, 'install'))
  assert.ok(readFileSync(join(folder, 'package-lock.json'), 'utf8').includes(`"resolved": "${now.windlass}"`))
  const again = fine(await on.npx(folder, '--no-install', 'windlass', 'upgrade-sdk'))
  assert.match(again, /has the packages of version [\d.]+ already/)
  const copy = join(on.home, 'copy')
  for (const name of ['package.json', 'package-lock.json']) cpSync(join(folder, name), join(copy, name))
  fine(await on.npm(copy, 'ci'))
})

test('a deploy bundles npm packages, the client among them, without a compiler of its platform', async () => {
  const on = machine('bundles')
  const { windlass, 'windlass-cli': cli } = await addresses()
  const folder = join(on.home, 'bundles')
  mkdirSync(folder)
  writeFileSync(join(folder, 'workflow.jsonc'), '{ "slug": "bundles" }')
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  fine(await on.npm(folder, 'install', windlass, cli))
  mkdirSync(join(folder, 'node_modules/three'), { recursive: true })
  writeFileSync(join(folder, 'node_modules/three/package.json'), '{ "name": "three", "type": "module" }')
  writeFileSync(join(folder, 'node_modules/three/index.js'), 'export const three = 3\n')
  writeFileSync(
    join(folder, 'index.ts'),
    `import { three } from 'three'
     import { log } from 'windlass'
     import { createClient } from 'windlass/client'
     export async function run(): Promise<{ three: number; code: string }> {
       log('asking nobody')
       const client = createClient({ url: 'http://127.0.0.1:9', org: 'x' })
       const code = await client.runs.list().then(() => 'none', (error: { code: string }) => error.code)
       return { three, code }
     }`,
  )
  fine(await on.npx(folder, '--no-install', 'windlass', 'deploy'))
  assert.equal(
    fine(await on.npx(folder, '--no-install', 'windlass', 'run', 'bundles')).trim(),
    '{"three":3,"code":"UNREACHABLE"}',
  )
})
