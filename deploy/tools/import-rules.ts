// These tables say who may import whom. `imports.ts` reads import lines and holds them against them. A path that ends
// in `/` stands for all below it, any other path for what begins with it.

export const ROOMS = ['shared', 'coordinator', 'agent', 'sdk', 'deploy'] as const

/** Programs that tests deploy or start: written to be wrong on purpose, and never part of the product. */
export const NOT_OURS = /^(coordinator|agent|sdk|shared|deploy)\/(test|e2e)\/(.*\/)?(fixtures|programs)\//

export interface Area {
  readonly files: readonly string[]
  /** What it may import of the project; `'all'` where nothing is refused. */
  readonly may: readonly string[] | 'all'
  /** What it may import with `import type` besides. */
  readonly mayTypes?: readonly string[]
  /** npm packages that it may import; whatever its package.json declares when left out. */
  readonly packages?: readonly string[]
  readonly sentence: string
}

const kits = ROOMS.map((room) => `${room}/test/_kit/`)

const tests = ROOMS.filter((room) => room !== 'deploy').map((room): Area => ({
  files: [`${room}/test/`],
  may: [`${room}/`, 'shared/', ...kits],
  sentence: 'a test imports its own room, shared and the test kits (`test/_kit/`)',
}))

/** The first place that holds a file speaks for it. */
export const AREAS: readonly Area[] = [
  ...tests,
  { files: ['deploy/'], may: 'all', sentence: 'deploy imports everything' },
  {
    files: ['shared/'],
    may: ['shared/'],
    packages: ['zod', 'uuid'],
    sentence: 'shared imports zod, uuid and Node only',
  },
  {
    files: ['sdk/runtime/engine/'],
    may: ['sdk/runtime/'],
    mayTypes: ['shared/'],
    packages: ['devalue'],
    sentence:
      'sdk/runtime/engine imports sdk/runtime, types of shared, and devalue: it is a bundle of its own that waiting programs load',
  },
  {
    files: ['sdk/index.ts', 'sdk/runtime/'],
    may: ['sdk/index.ts', 'sdk/runtime/'],
    mayTypes: ['shared/'],
    packages: [],
    sentence:
      'sdk/index and sdk/runtime import types of shared only (`import type`), and no package: they load in every program',
  },
  { files: ['sdk/client/'], may: ['sdk/client/', 'shared/'], sentence: 'sdk/client imports shared only' },
  {
    files: ['sdk/cli/commands/agent'],
    may: ['sdk/', 'shared/', 'agent/'],
    sentence: 'sdk/cli/commands/agent* import sdk, shared and agent',
  },
  {
    files: ['sdk/cli/commands/admin'],
    may: ['sdk/', 'shared/', 'coordinator/admin/'],
    sentence: 'sdk/cli/commands/admin* import sdk, shared and coordinator/admin',
  },
  {
    files: ['sdk/cli/'],
    may: ['sdk/', 'shared/'],
    sentence:
      'sdk/cli imports sdk and shared; only sdk/cli/commands/agent* import agent, and sdk/cli/commands/admin* coordinator/admin',
  },
  {
    files: ['sdk/examples/'],
    may: ['sdk/examples/', 'sdk/index.ts'],
    sentence: 'an example imports `windlass` and its own files, as a customer would',
  },
  { files: ['sdk/'], may: ['sdk/', 'shared/'], sentence: 'sdk imports shared only' },
  {
    files: ['agent/'],
    may: ['agent/', 'shared/'],
    sentence: 'agent imports shared only: it knows the coordinator by its wire',
  },
  {
    files: ['coordinator/dashboard/'],
    may: ['coordinator/dashboard/', 'shared/'],
    sentence: 'coordinator/dashboard imports shared only: pages speak to the API like anybody else',
  },
  { files: ['coordinator/'], may: ['coordinator/', 'shared/'], sentence: 'coordinator imports shared only' },
]

export const TEST_ONLY = 'what lies in a test folder is imported by tests and deploy only'

export interface Layer {
  readonly name: string
  readonly files: readonly string[]
}

/** The coordinator from top to bottom: a file imports its own layer and those below. */
export const LAYERS: readonly Layer[] = [
  {
    name: 'main',
    files: ['coordinator/main.ts', 'coordinator/start.ts', 'coordinator/compose.ts', 'coordinator/groups.ts'],
  },
  { name: 'http, mcp', files: ['coordinator/http/', 'coordinator/mcp/'] },
  // What every interface does with a request, whatever its protocol.
  { name: 'call', files: ['coordinator/call/'] },
  // A job is a way in like the API: it is called from outside and calls verbs.
  { name: 'api, jobs', files: ['coordinator/api/', 'coordinator/jobs/'] },
  { name: 'verbs', files: [] },
  {
    name: 'store, events, jobs/queue',
    files: ['coordinator/events/', 'coordinator/jobs/queue.ts', 'coordinator/engine/store/'],
  },
  { name: 'db', files: ['coordinator/db/'] },
  {
    name: 'ground',
    files: [
      'coordinator/config.ts',
      'coordinator/settings.ts',
      'coordinator/sizes.ts',
      'coordinator/actor.ts',
      'coordinator/pace.ts',
      'coordinator/slices.ts',
      'coordinator/stay.ts',
      'coordinator/turns.ts',
      'coordinator/matching/',
      'coordinator/engine/rules/',
    ],
  },
]

/** Where a file of the coordinator belongs that no layer names. */
export const VERBS = 'verbs'

/** All SQL of a noun. The events' store is none: events are a layer, and every verb writes some. */
export const STORE = /^coordinator\/((?!events\/)[^/]+\/store(-[a-z]+)?\.ts$|engine\/store\/)/

/** A room of several folders: what lies in its store is imported by all of them. */
export const ENGINE = 'coordinator/engine/'

/** The rooms that the engine calls. What it needs of verbs is handed to it. */
export const ENGINE_CALLS = {
  may: [
    ENGINE,
    'coordinator/audit/record.ts',
    'coordinator/canonical-hash.ts',
    'coordinator/db/',
    'coordinator/events/',
    'coordinator/jobs/queue.ts',
    'coordinator/judging/',
    'coordinator/limits/',
    'coordinator/matching/',
    'coordinator/slices.ts',
    'coordinator/stay.ts',
    'coordinator/turns.ts',
  ],
  sentence: 'the engine calls no verbs of other rooms: hand it what it needs (`import type` is free; see ENGINE_CALLS)',
}

/** Files with one importer: runs are locked and saved on one way only. */
export const GATES: readonly { readonly file: string; readonly by: string }[] = [
  { file: 'coordinator/engine/commit/lock.ts', by: 'coordinator/engine/commit/move-runs.ts' },
  { file: 'coordinator/engine/commit/save.ts', by: 'coordinator/engine/commit/move-runs.ts' },
]

/** What runs may do, decided without a database. */
export const RULES = {
  files: 'coordinator/engine/rules/',
  sentence: 'engine/rules imports values of shared and of its own folder only (`import type` is free): it decides',
}

/** Lies in the layer of the stores: each store, and `row.ts`, which says what its rows look like. */
export const STORED = { layer: 'store, events, jobs/queue', file: /^coordinator\/[^/]+\/(store|row)(-[a-z]+)?\.ts$/ }

export const NEVER_UPWARD =
  'in the coordinator http, mcp → call → api, jobs → verbs → store, events, jobs/queue → db; never upward (the layers stand in deploy/tools/import-rules.ts)'
// Rows are plain types and travel with `import type`; what stays at home is the SQL.
export const OWN_STORE =
  'a store is imported by its own room only: reach another noun through its verbs (`import type` of its rows is free)'

/** Packages that one file imports. Tests and deploy are free. */
export const SOLE_IMPORTERS: readonly { readonly pkg: string; readonly file: string }[] = [
  { pkg: 'hyper-express', file: 'coordinator/http/server.ts' },
  { pkg: '@modelcontextprotocol/server', file: 'coordinator/mcp/server.ts' },
  { pkg: 'execa', file: 'agent/os/process.ts' },
]

/**
 * Who may touch `process.env`. In sdk/runtime it is the program's own environment, which is what that code looks after;
 * by uws/heads.js the HTTP library is told what it reads there and nowhere else. shared/log-out.ts learns of systemd's
 * journal before any settings are read: what is wrong with these is logged too.
 */
export const ENVIRONMENT = {
  files:
    /(^|\/)config\.ts$|\/uws\/heads\.js$|^shared\/log-out\.ts$|^sdk\/(cli|runtime|examples)\/|^deploy\/|^[^/]+\/test\//,
  sentence: 'settings are read once: only config.ts files, sdk/cli, sdk/runtime, deploy and tests touch `process.env`',
}
