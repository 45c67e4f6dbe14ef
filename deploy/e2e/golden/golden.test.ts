// What a rebuild of the house must not move: what REST, MCP and CLI answer, and what programs leave in their logs.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, between } from './between.ts'
import { cliActs, CliTranscript, whoAmI } from './cli-acts.ts'
import { type Act, changesIn, goldenActs, goldenText, keepsTo } from './golden-file.ts'
import { mcpActs } from './mcp-acts.ts'
import { namesIn, ourNames } from './our-names.ts'
import { PLAYS } from './play-list.ts'
import { calmActs, perform, upheavalActs } from './plays.ts'
import { nowhere, restActs } from './rest-acts.ts'
import { RestTranscript } from './rest.ts'
import { goldenWorld, type World } from './world.ts'

const world = goldenWorld()

const PARTS = { rest: restActs, mcp: mcpActs, cli: cliActs, programs: calmActs }
type Part = keyof typeof PARTS
let recording: Record<Part, Promise<Act[]>> | undefined

/** All of it at once, since most of it waits. Whoever kills a coordinator comes last. */
function recorded(part: Part): Promise<Act[]> {
  recording ??= record()
  return recording[part]
}

function record(): Record<Part, Promise<Act[]>> {
  const [rest, mcp, cli, calm] = [restActs(world), mcpActs(world), cliActs(world), calmActs(world)]
  const programs = Promise.allSettled([rest, mcp, cli]).then(async () => [
    ...(await calm),
    ...(await upheavalActs(world)),
  ])
  const parts = { rest, mcp, cli, programs }
  // Each is told by the test that asks for it.
  for (const acts of [calm, ...Object.values(parts)]) acts.catch(() => undefined)
  return parts
}

for (const part of ['rest', 'mcp', 'cli', 'programs'] as const) {
  test(`${part}: every act is answered as it was`, async () => keepsTo(part, await recorded(part)))
}

/** What the golden says when something between changes an answer. */
async function whatItSays(part: Part, change: (answer: Answer) => Answer, act: (world: World) => Promise<Act>) {
  const proxy = await between(world.instance().access.url, change)
  try {
    const changed = await act(world.through(proxy.url))
    const golden = goldenActs(part).filter(({ name }) => name === changed.name)
    return changesIn(golden, [changed])
  } finally {
    await proxy.close()
  }
}

const unchanged = (answer: Answer) => answer

for (const change of [unchanged, (answer: Answer) => ({ ...answer, status: 410 })]) {
  test(`another status code is ${change === unchanged ? 'not seen where there is none' : 'seen'}`, async () => {
    const said = await whatItSays('rest', change, async (world) => {
      const rest = new RestTranscript(world, 'rest')
      await nowhere(rest)
      return rest.acts[0]!
    })
    if (change === unchanged) return assert.deepEqual(said, [])
    assert.equal(said.length, 1)
    assert.match(said[0]!, /^--- a path that is none\n[^]*\n-< 404\n\+< 410\n/)
  })
}

test('another type of one event is seen', async () => {
  const renamed = ({ status, text }: Answer) => ({ status, text: text.replaceAll('run.completed', 'run.finished') })
  const said = await whatItSays('programs', renamed, (world) => perform(world, PLAYS[0]!))
  assert.equal(said.length, 1)
  assert.match(
    said[0]!,
    /^--- returns a value\n[^]*\n-5 lifecycle run\.completed \{\}\n\+5 lifecycle run\.finished \{\}\n/,
  )
})

test('another line of a command is seen', async () => {
  const renamed = ({ status, text }: Answer) => ({ status, text: text.replaceAll('Org of cli', 'Org of CLI') })
  const said = await whatItSays('cli', renamed, async (world) => {
    const cli = new CliTranscript(world)
    await whoAmI(cli)
    return cli.acts[0]!
  })
  assert.equal(said.length, 1)
  assert.match(
    said[0]!,
    /^--- whom a key stands for\n[^]*\n- {2}org {6}cli \(Org of cli\)\n\+ {2}org {6}cli \(Org of CLI\)\n/,
  )
})

test('no name of a table, a column, a file or a frame of ours stands in it', async () => {
  const names = ourNames(await world.tables())
  for (const [kind, list] of Object.entries(names)) assert.ok(list.length > 10, `${kind}: ${list.length} names`)
  const [table, column] = [names.tables, names.columns].map((list) => list.find((name) => name.includes('_')))
  const planted = [`from ${table}`, `where ${column} = 1`, `at ${names.files.at(-1)}:1`, `{"t":"${names.frames[0]}"}`]
  assert.deepEqual(namesIn(planted.join('\n'), names), planted)
  for (const part of Object.keys(PARTS)) assert.deepEqual(namesIn(goldenText(part), names), [], part)
})
