import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { ROOMS } from '../../tools/import-rules.ts'
import { checkFile, checkImports } from '../../tools/imports.ts'
import { describePackages } from '../../tools/packages.ts'
import { PROJECT } from '../../tools/source-files.ts'

const everything = { './*': './*' }
const packages = describePackages([
  { room: '', json: { name: '@windlass/root', devDependencies: { nock: '1' } } },
  {
    room: 'shared',
    json: { name: '@windlass/shared', exports: everything, dependencies: { zod: '1', uuid: '1', ws: '1' } },
  },
  {
    room: 'coordinator',
    json: {
      name: '@windlass/coordinator',
      exports: everything,
      dependencies: {
        '@windlass/shared': '1',
        'hyper-express': '1',
        postgres: '1',
        '@modelcontextprotocol/server': '1',
      },
    },
  },
  {
    room: 'agent',
    json: {
      name: '@windlass/agent',
      exports: everything,
      dependencies: { '@windlass/shared': '1', '@windlass/coordinator': '1', windlass: '1', execa: '1' },
    },
  },
  {
    room: 'sdk',
    json: {
      name: 'windlass',
      exports: { '.': './index.ts', './client': './client/index.ts', './runtime/*': './runtime/*' },
      dependencies: {
        '@windlass/shared': '1',
        '@windlass/agent': '1',
        '@windlass/coordinator': '1',
        commander: '1',
        zod: '1',
      },
    },
  },
  { room: 'deploy', json: { name: '@windlass/deploy', dependencies: { '@windlass/coordinator': '1', execa: '1' } } },
])

/** The sentence against a source of one line; `undefined` when nothing is against it. */
function against(file: string, text: string): string | undefined {
  return checkFile(file, text, packages)[0]?.sentence
}

function allowed(file: string, text: string): void {
  assert.deepEqual(checkFile(file, text, packages), [], `${file}: ${text}`)
}

function refused(file: string, text: string, sentence: RegExp): void {
  assert.match(against(file, text) ?? 'nothing is against it', sentence, `${file}: ${text}`)
}

test('the project keeps its own import rule', () => {
  assert.deepEqual(checkImports(PROJECT), [])
})

test('a violation names file, line, import and sentence', () => {
  const text = "// import 'zod'\n/* import 'ws' */\nconst s = `import 'ws'`\nimport { a } from 'ws'\n"
  assert.deepEqual(checkFile('shared/log.ts', text, packages), [
    { file: 'shared/log.ts', line: 4, what: 'imports "ws"', sentence: 'shared imports zod, uuid and Node only' },
  ])
})

test('a module is read whatever its ending', (t) => {
  const root = mkdtempSync(path.join(tmpdir(), 'imports-'))
  t.after(() => rmSync(root, { recursive: true }))
  execFileSync('git', ['init', '--quiet'], { cwd: root })
  for (const room of ROOMS) mkdirSync(path.join(root, room))
  for (const room of ['', ...ROOMS]) writeFileSync(path.join(root, room, 'package.json'), `{ "name": "${room}" }`)
  const files = ['cjs', 'cts', 'js', 'mjs', 'mts', 'ts'].map((ending) => `shared/log.${ending}`)
  for (const file of files) writeFileSync(path.join(root, file), "import '../agent/main.ts'\n")
  assert.deepEqual(
    checkImports(root).map((violation) => violation.file),
    files,
  )
})

test('shared imports zod, uuid, Node and itself', () => {
  for (const from of ['zod', 'uuid', 'node:path', 'path', './model/run.ts'])
    allowed('shared/ids.ts', `import x from '${from}'`)
  refused('shared/ids.ts', "import { x } from '../sdk/index.ts'", /^shared imports/)
  refused('shared/ids.ts', "import type { X } from '../coordinator/compose.ts'", /^shared imports/)
})

test('every form of an import is seen', () => {
  const forms = [
    "import '../agent/main.ts'",
    "export * from '../agent/main.ts'",
    "export type { A } from '../agent/main.ts'",
    "const a = await import('../agent/main.ts')",
    'const a = await import(`../agent/main.ts`)',
    "type A = import('../agent/main.ts').A",
    "import a = require('../agent/main.ts')",
    "const a = require('../agent/main.ts')",
    "const a = new Worker(new URL('../agent/main.ts', import.meta.url), { name: 'a' })",
  ]
  for (const form of forms) refused('shared/log.ts', form, /^shared imports/)
})

test('sdk/index and sdk/runtime take types of shared, and an inline `type` is not one', () => {
  allowed('sdk/runtime/emit.ts', "import type { Frame } from '@windlass/shared/wire/program.ts'")
  allowed('sdk/index.ts', "export { phase } from './runtime/emit.ts'")
  refused(
    'sdk/runtime/emit.ts',
    "import { type Frame } from '@windlass/shared/wire/program.ts'",
    /types of shared only/,
  )
  refused('sdk/index.ts', "import { z } from 'zod'", /types of shared only/)
  refused('sdk/index.ts', "import { createClient } from './client/index.ts'", /types of shared only/)
})

test('the command line reaches the agent from its agent command only', () => {
  allowed('sdk/cli/commands/agent-start.ts', "const agent = await import('@windlass/agent/main.ts')")
  refused(
    'sdk/cli/commands/deploy.ts',
    "const agent = await import('@windlass/agent/main.ts')",
    /only sdk\/cli\/commands\/agent/,
  )
  refused('sdk/client/index.ts', "import { run } from '../cli/main.ts'", /sdk\/client imports shared only/)
})

test('an example imports `windlass` by its name', () => {
  allowed('sdk/examples/hello/index.ts', "import { phase } from 'windlass'")
  refused('sdk/examples/hello/index.ts', "import { createClient } from 'windlass/client'", /as a customer would/)
})

test('nobody imports the coordinator but its tests, deploy and the commands for its host', () => {
  const admin = "const { openAdmin } = await import('@windlass/coordinator/admin/open.ts')"
  allowed('sdk/cli/commands/admin-keys.ts', admin)
  refused('sdk/cli/commands/keys.ts', admin, /admin\* coordinator\/admin/)
  refused(
    'sdk/cli/commands/admin.ts',
    "import { mintApiKey } from '@windlass/coordinator/accounts/api-keys.ts'",
    /coordinator\/admin$/,
  )
  refused('agent/main.ts', "import { x } from '@windlass/coordinator/config.ts'", /agent imports shared only/)
  refused('agent/main.ts', "import { phase } from 'windlass'", /agent imports shared only/)
  allowed('coordinator/test/runs/cancel.test.ts', "import { cancelRun } from '../../runs/cancel.ts'")
  allowed('agent/test/run/a.test.ts', "import { testDatabase } from '../../../coordinator/test/_kit/database.ts'")
  refused('agent/test/run/a.test.ts', "import { main } from '../../../coordinator/main.ts'", /^a test imports/)
  allowed('deploy/e2e/storm.test.ts', "import { main } from '@windlass/coordinator/main.ts'")
  refused('coordinator/runs/cancel.ts', "import { x } from '../test/_kit/database.ts'", /tests and deploy only/)
})

test('the coordinator imports downward', () => {
  const down: [string, string][] = [
    ['main.ts', './http/server.ts'],
    ['http/dispatch.ts', '../api/index.ts'],
    ['mcp/server.ts', '../api/index.ts'],
    ['api/runs.ts', '../runs/cancel.ts'],
    ['jobs/cancel-deadline.ts', '../runs/cancel.ts'],
    ['runs/cancel.ts', './store.ts'],
    ['runs/cancel.ts', '../events/append.ts'],
    ['runs/cancel.ts', '../jobs/queue.ts'],
    ['runs/cancel.ts', '../workflows/read.ts'],
    ['runs/store.ts', '../db/client.ts'],
    ['runs/store.ts', './row.ts'],
    ['runs/moves.ts', '../events/store.ts'],
    ['events/bell.ts', '../db/client.ts'],
    ['db/client.ts', '../config.ts'],
  ]
  for (const [file, target] of down) allowed(`coordinator/${file}`, `import { x } from '${target}'`)
})

test('the coordinator never imports upward', () => {
  const up: [string, string][] = [
    ['db/client.ts', '../events/append.ts'],
    ['events/append.ts', '../runs/cancel.ts'],
    ['runs/store.ts', './cancel.ts'],
    ['runs/row.ts', './cancel.ts'],
    ['events/store.ts', '../runs/cancel.ts'],
    ['runs/cancel.ts', '../api/runs.ts'],
    ['runs/cancel.ts', '../jobs/runner.ts'],
    ['jobs/queue.ts', './cancel-deadline.ts'],
    ['api/runs.ts', '../http/dispatch.ts'],
    ['http/dispatch.ts', '../main.ts'],
    ['runs/cancel.ts', '../compose.ts'],
  ]
  for (const [file, target] of up) refused(`coordinator/${file}`, `import { x } from '${target}'`, /never upward/)
  refused('coordinator/runs/cancel.ts', "import type { Composed } from '../compose.ts'", /never upward/)
})

test("a store is its room's own, its row types are free", () => {
  refused('coordinator/workflows/update.ts', "import * as runs from '../runs/store.ts'", /by its own room only/)
  refused('coordinator/api/runs.ts', "import * as runs from '../runs/store.ts'", /by its own room only/)
  allowed('coordinator/api/runs.ts', "import type { RunRow } from '../runs/store.ts'")
  refused('coordinator/runs/restart.ts', "import { lock } from '../engine/store/runs.ts'", /by its own room only/)
  allowed('coordinator/engine/commit/cancel.ts', "import { lock } from '../store/runs.ts'")
  allowed('coordinator/test/runs/a.test.ts', "import * as runs from '../../runs/store.ts'")
})

test('the rules of the engine are pure', () => {
  const file = 'coordinator/engine/rules/outcome.ts'
  allowed(file, "import { finish } from './transitions.ts'")
  allowed(file, "import type { Version } from '../../workflows/targets.ts'")
  for (const target of ['../../workflows/targets.ts', '../store/runs.ts', '../../db/client.ts'])
    refused(file, `import { x } from '${target}'`, /^engine\/rules imports values of shared/)
  allowed('coordinator/runs/why.ts', "import { refusal } from '../engine/rules/journal-command.ts'")
})

test('the engine calls no verbs, and locks and saves runs in one place', () => {
  const file = 'coordinator/engine/commit/apply.ts'
  allowed(file, "import { record } from '../../audit/record.ts'")
  allowed(file, "import type { Version } from '../../workflows/targets.ts'")
  for (const target of ['../../workflows/targets.ts', '../../runners/intake.ts', '../../environments/names.ts'])
    refused(file, `import { x } from '${target}'`, /^the engine calls no verbs/)
  for (const target of ['./lock.ts', './save.ts']) {
    allowed('coordinator/engine/commit/move-runs.ts', `import { x } from '${target}'`)
    refused(file, `import { x } from '${target}'`, /^only coordinator\/engine\/commit\/move-runs.ts imports/)
  }
})

test('some packages are imported by one file only', () => {
  allowed('coordinator/http/server.ts', "import HyperExpress from 'hyper-express'")
  refused(
    'coordinator/http/dispatch.ts',
    "import type { Request } from 'hyper-express'",
    /^only coordinator\/http\/server.ts/,
  )
  refused('coordinator/http/server.ts', "import { M } from '@modelcontextprotocol/server'", /^only coordinator\/mcp/)
  allowed('agent/os/process.ts', "import { execa } from 'execa'")
  refused('agent/run/hosts/spares.ts', "import { execa } from 'execa'", /^only agent\/os\/process.ts/)
  allowed('deploy/load/bench.ts', "import { execa } from 'execa'")
})

test('what is imported is declared, and only tests may count on the root', () => {
  refused('agent/main.ts', "import pg from 'pg'", /add `pg` to agent\/package.json/)
  refused('agent/main.ts', "import nock from 'nock'", /add `nock` to agent\/package.json/)
  allowed('agent/test/link/rest.test.ts', "import nock from 'nock'")
})

test('settings are read in few places', () => {
  const ways = [
    'const a = process.env.A',
    "const a = process['env']",
    'const { env } = process',
    "import { env } from 'node:process'",
  ]
  for (const way of ways) refused('coordinator/runs/cancel.ts', way, /settings are read once/)
  for (const file of ['coordinator/config.ts', 'sdk/cli/main.ts', 'deploy/tools/dev.ts', 'agent/test/a.test.ts']) {
    allowed(file, 'const a = globalThis.process.env.A')
  }
  allowed('coordinator/runs/cancel.ts', "// process.env\nconst a = { env: process.pid, text: 'process.env' }")
})
