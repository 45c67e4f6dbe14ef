import assert from 'node:assert/strict'
import { cpSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, test } from 'node:test'
import type { Instance } from '@windlass/shared/wire/agent.ts'
import { until, untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { openInstance } from '../../instance.ts'
import { aFolder, anAgent, anAgentProcess, endAgentProcesses } from '../_kit/an-agent.ts'
import { FakeCoordinator } from '../_kit/fake-coordinator.ts'

after(endAgentProcesses)

test('each start that was welcomed has a name of its own and knows the two before it, on the same host and boot', async () => {
  const { folder, remove } = await aFolder()
  try {
    const seen: Instance[] = []
    for (let i = 0; i < 4; i++) {
      const start = await openInstance(folder)
      await start.welcomed('here')
      seen.push(start.instance)
    }
    assert.equal(new Set(seen.map(({ id }) => id)).size, 4)
    assert.deepEqual(
      seen.map(({ previous }) => previous),
      [[], [seen[0]!.id], [seen[1]!.id, seen[0]!.id], [seen[2]!.id, seen[1]!.id]],
    )
    assert.equal(new Set(seen.map(({ host }) => host)).size, 1)
    assert.equal(new Set(seen.map(({ boot }) => boot)).size, 1)
  } finally {
    await remove()
  }
})

test('starts that nobody has welcomed go on under one name, so that the last known one is never forgotten', async () => {
  const { folder, remove } = await aFolder()
  try {
    const first = await openInstance(folder)
    await first.welcomed('here')
    const unheard = await openInstance(folder)
    const seen = [unheard.instance]
    for (let i = 0; i < 5; i++) seen.push((await openInstance(folder)).instance)
    for (const { process: _, ...named } of seen) assert.deepEqual({ ...named, process: seen[0]!.process }, seen[0])
    assert.equal(new Set(seen.map(({ process }) => process)).size, 6, 'which process it is, is in no file')
    assert.deepEqual(unheard.instance.previous, [first.instance.id])
  } finally {
    await remove()
  }
})

test('a start says which cluster welcomed it last, also when it has changed meanwhile', async () => {
  const { folder, remove } = await aFolder()
  try {
    const first = await openInstance(folder)
    assert.equal(first.instance.cluster, undefined)
    await first.welcomed('one')
    await first.welcomed('two')
    assert.equal(first.instance.cluster, 'two')
    assert.equal((await openInstance(folder)).instance.cluster, 'two')
  } finally {
    await remove()
  }
})

/** Nothing can be put in its place: the draft cannot be written, as on a full disk. */
function blockWrites(folder: string): () => void {
  const draft = path.join(folder, 'instance.json.new')
  mkdirSync(draft)
  return () => rmdirSync(draft)
}

const isWelcomed = (folder: string) =>
  JSON.parse(readFileSync(path.join(folder, 'instance.json'), 'utf8')).isWelcomed === true

test('a welcome that could not be written down is written with the next one', async () => {
  const { folder, remove } = await aFolder()
  try {
    const start = await openInstance(folder)
    const free = blockWrites(folder)
    await assert.rejects(start.welcomed('here'))
    assert.equal(start.instance.cluster, 'here')
    free()
    assert.equal(isWelcomed(folder), false)
    await start.welcomed('here')
    assert.deepEqual((await openInstance(folder)).instance.previous, [start.instance.id])
  } finally {
    await remove()
  }
})

test('an agent whose disk has room again writes down that it was welcomed', async () => {
  const fake = await FakeCoordinator.start()
  const { folder, remove } = await aFolder()
  writeFileSync(path.join(folder, 'instance.json'), JSON.stringify({ id: 'a', isWelcomed: false, previous: [] }))
  const free = blockWrites(folder)
  const agent = await anAgent(fake.url, folder)
  try {
    await until('it cannot write', () => agent.lines.some(({ name }) => name === 'instance.unwritten'))
    free()
    await untilPolled('the welcome to be written down', () => isWelcomed(folder))
  } finally {
    agent.stop()
    await agent.done
    await fake.close()
    await remove()
  }
})

test('a copy of the folder is on another host, as far as one can tell, and a damaged file is said to be', async () => {
  const [original, copy] = [await aFolder(), await aFolder()]
  try {
    const start = await openInstance(original.folder)
    cpSync(original.folder, copy.folder, { recursive: true })
    assert.notEqual((await openInstance(copy.folder)).instance.host, start.instance.host)
    writeFileSync(path.join(copy.folder, 'instance.json'), '{"id":')
    await assert.rejects(openInstance(copy.folder), {
      name: 'AgentRefusal',
      exitCode: 78,
      message: /instance\.json is damaged/,
    })
  } finally {
    await Promise.all([original.remove(), copy.remove()])
  }
})

test('an agent that is killed and started again says which start was before it', async () => {
  const fake = await FakeCoordinator.start()
  const { folder, remove } = await aFolder()
  const heard = (count: number) => until(`${count} hellos`, () => fake.heard('hello').length >= count)
  try {
    const first = await anAgentProcess(fake.url, folder)
    await heard(1)
    await untilPolled('the welcome to be written down', () => isWelcomed(folder))
    fake.cut()
    await heard(2)
    await first.kill('SIGKILL')
    const second = await anAgentProcess(fake.url, folder)
    await heard(3)
    const hellos = fake.heard('hello')
    assert.deepEqual(
      hellos.map(({ connection }) => connection),
      [1, 2, 1],
      'each process counts its connections',
    )
    const [one, again, other] = hellos.map(({ instance }) => instance!)
    assert.deepEqual(again, { ...one, cluster: 'fake' }, 'a connection more is no start more')
    assert.deepEqual(other!.previous, [one!.id])
    assert.deepEqual([other!.host, other!.boot, other!.cluster], [one!.host, one!.boot, 'fake'])
    await second.kill('SIGKILL')
  } finally {
    await endAgentProcesses()
    await fake.close()
    await remove()
  }
})
