import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import { type Db, openDatabase } from '@windlass/coordinator/db/client.ts'
import { startEmbedded } from '@windlass/coordinator/db/embedded.ts'
import { createLog } from '@windlass/shared/log.ts'
import { within } from '@windlass/shared/time.ts'
import { type Belongings, createBelongings } from './belongings.ts'
import { meter } from './cpu.ts'
import { httpLoad } from './http-load.ts'
import { wait } from './measure.ts'
import { ownCpuMs, treeCpuMs } from './processes.ts'
import type { Loaded } from './settled.ts'
import type { Done, Given, Order, SkeletonMessage } from './skeleton-messages.ts'

/** A running skeleton: a server with a database of its own, whose settings are those of the product. */
export interface Skeleton {
  /** Triggers no-op runs and waits until all are completed. */
  load(options: { runs: number; callers: number }): Promise<Loaded>
  stop(): Promise<void>
}

const log = createLog({ process: 'bench' }, 'error')
const READY_MS = 20_000
const LOADED_MS = 120_000
/** The same interval as for the product. */
const LOOK_MS = 20
/** Length of the server's last words in the log, when it ends unexpectedly. */
const SAID_CHARS = 4000

export async function startSkeleton(slots: number): Promise<Skeleton> {
  const own = createBelongings()
  try {
    return await start(own, slots)
  } catch (error) {
    await own.close()
    throw error
  }
}

async function start(own: Belongings, slots: number): Promise<Skeleton> {
  const home = await own.add(mkdtemp(join(tmpdir(), 'windlass-skeleton-')), (path) =>
    rm(path, { recursive: true, force: true }),
  )
  const server = await own.add(startEmbedded({ home, log }), (running) => running.stop())
  const database = openDatabase({ url: server.url, max: 1, log })
  own.defer(() => database.close())
  const address = new URL(server.url)
  const order = { host: address.searchParams.get('host')!, password: address.password, slots }
  const { child, port } = await startServer(own, order)
  await connectAgent(own, port)
  const url = `http://127.0.0.1:${port}`
  const parts = {
    server: () => treeCpuMs(child.pid!),
    PostgreSQL: () => treeCpuMs(server.pid),
    bench: () => ownCpuMs(process.pid),
  }
  return {
    async load({ runs, callers }) {
      // An empty table for each load: else the last load would be slower than the first.
      await database.db`truncate skeleton_runs`
      const target = { url, path: '/runs', apiKey: 'none', body: '{}' }
      const used = meter(parts)
      const since = performance.now()
      const { failed } = await httpLoad({ ...target, connections: callers, requests: runs, expect: 201 })
      if (failed > 0) throw new Error(`${failed} requests to the skeleton were refused`)
      const until = await settled(child, since + LOADED_MS)
      const cpu = used(runs)
      if ((await completed(database.db)) !== runs) throw new Error('the skeleton has lost runs')
      return { tookMs: until - since, cpu }
    },
    stop: () => own.close(),
  }
}

async function startServer(own: Belongings, order: Order): Promise<{ child: ChildProcess; port: number }> {
  const child = fork(join(import.meta.dirname, 'skeleton-server.ts'), {
    execArgv: ['--disable-warning=ExperimentalWarning'],
    // uWebSockets.js prints a warning there about the upgrade, which nobody needs to see.
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let said = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-SAID_CHARS)))
  child.once('exit', (code) => code && log.error('skeleton.ended', { code, said }))
  own.defer(() => end(child))
  child.send(order)
  const answered = await answerOf(child)
  if (answered.what !== 'ready') throw new Error('the skeleton was not ready')
  return { child, port: answered.port }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

/** The server's next message. Rejects when the server ends before. */
async function answerOf(child: ChildProcess): Promise<SkeletonMessage> {
  const ended = new AbortController()
  const onExit = () => ended.abort(new Error('the process of the skeleton has ended'))
  child.once('exit', onExit)
  try {
    const answer = once(child, 'message', { signal: ended.signal }) as Promise<[SkeletonMessage]>
    return (await within(READY_MS, answer, 'the skeleton did not answer'))[0]
  } finally {
    child.off('exit', onExit)
  }
}

/** Connects an agent that completes every run at once. */
async function connectAgent(own: Belongings, port: number): Promise<void> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/agent`)
  own.defer(() => socket.terminate())
  socket.on('error', (error) => log.error('skeleton.socket', { error }))
  socket.on('message', (data: Buffer) => {
    const done = (JSON.parse(data.toString()) as Given[]).map(({ id }): Done => ({ id, output: 'null' }))
    socket.send(JSON.stringify(done))
  })
  await once(socket, 'open', { signal: AbortSignal.timeout(READY_MS) })
}

async function settled(child: ChildProcess, deadline: number): Promise<number> {
  for (;;) {
    await wait(LOOK_MS)
    const answer = answerOf(child)
    child.send('open')
    const answered = await answer
    const at = performance.now()
    if (answered.what === 'open' && answered.runs === 0) return at
    if (at > deadline) throw new Error(`the skeleton had not completed its runs after ${LOADED_MS} ms`)
  }
}

async function completed(db: Db): Promise<number> {
  const [row] = await db<[{ n: number }]>`
    select count(*)::int as n from skeleton_runs where status = 'completed'`
  return row.n
}
