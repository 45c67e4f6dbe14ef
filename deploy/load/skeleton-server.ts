// The skeleton: the shape of the product without its code. An HTTP server inserts a run and answers when it is
// committed; then come a claim, a frame to the agent and one back, and an update that completes the run. All waiting
// requests share a commit. There are no users, events or leases. The parent process says where the database is.
import { Server } from 'hyper-express'
import postgres from 'postgres'
import { freePort } from '@windlass/coordinator/http/free-port.ts'
import type { Done, Given, Order, SkeletonMessage } from './skeleton-messages.ts'

const HOST = '127.0.0.1'
const MOST = 256
const MOST_FRAME_BYTES = 4 * 1024 * 1024
/** The product's session settings: statements are planned once and use the keys. */
const SESSION = {
  plan_cache_mode: 'force_generic_plan',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_seqscan: 'off',
}

const tell = (message: SkeletonMessage) => void process.send?.(message)

process.on('disconnect', () => process.exit(0))
process.on('message', (message: Order | 'open') => {
  if (message === 'open') tell({ what: 'open', runs: open })
  else void serve(message)
})

/** Number of runs that have been requested and are not completed. */
let open = 0

async function serve({ host, password, slots }: Order): Promise<void> {
  const db = postgres({ host, user: 'windlass', password, database: 'postgres', max: 4, connection: SESSION })
  await db`create table skeleton_runs (id text primary key, status text not null, input text not null, output text)`
  await db`create index on skeleton_runs (id) where status = 'queued'`
  const inserts = grouped<NewRun>(2, (runs) => insert(db, runs))
  const completions = grouped<Done>(1, (runs) => complete(db, runs))
  let queued = 0
  let free = slots
  let isClaiming = false
  let send: ((text: string) => void) | undefined

  async function claimAll(): Promise<void> {
    if (isClaiming || !send) return
    isClaiming = true
    while (queued > 0 && free > 0) {
      const given = await claim(db, Math.min(MOST, free))
      queued -= given.length
      free -= given.length
      if (given.length > 0) send(JSON.stringify(given))
    }
    isClaiming = false
  }

  const server = new Server({ auto_close: false })
  server.post('/runs', (request, response) => {
    void answer(request).then((text) => {
      response.status(201).header('content-type', 'application/json').send(text)
      return claimAll()
    })
  })
  async function answer(request: { json(): Promise<{ input?: unknown }> }): Promise<string> {
    const { input } = await request.json()
    open++
    const id = newId()
    await inserts({ id, input: JSON.stringify(input ?? null) })
    queued++
    return JSON.stringify({ run: { id } })
  }
  server.ws('/agent', { message_type: 'String', max_payload_length: MOST_FRAME_BYTES, idle_timeout: 0 }, (socket) => {
    send = (text) => void socket.send(text)
    socket.on('message', (text) => {
      for (const done of JSON.parse(text as string) as Done[]) void completions(done).then(onCompleted)
    })
  })
  function onCompleted(): void {
    open--
    free++
    void claimAll()
  }
  await server.listen(await freePort(HOST, 0), HOST)
  tell({ what: 'ready', port: server.port })
}

interface NewRun {
  id: string
  input: string
}

let ids = 0
const start = Date.now().toString(36)
const newId = () => `run_${start}${(ids++).toString(36).padStart(8, '0')}`

/** Items that arrive during a commit share the next one. */
function grouped<T>(lanes: number, commit: (items: T[]) => Promise<unknown>): (item: T) => Promise<void> {
  let waiting: { item: T; resolve(): void }[] = []
  let underWay = 0
  let isScheduled = false
  function schedule(): void {
    if (isScheduled || underWay >= lanes || waiting.length === 0) return
    isScheduled = true
    setImmediate(() => {
      isScheduled = false
      void flush()
    })
  }
  async function flush(): Promise<void> {
    const batch = waiting.slice(0, MOST)
    waiting = waiting.slice(MOST)
    underWay++
    schedule()
    await commit(batch.map(({ item }) => item))
    underWay--
    for (const one of batch) one.resolve()
    schedule()
  }
  return (item) =>
    new Promise((resolve) => {
      waiting.push({ item, resolve })
      schedule()
    })
}

type Db = postgres.Sql

const insert = (db: Db, runs: readonly NewRun[]) => db`
  insert into skeleton_runs (id, status, input)
  select id, 'queued', input
  from unnest(${runs.map(({ id }) => id)}::text[], ${runs.map(({ input }) => input)}::text[]) as new (id, input)`

const claim = (db: Db, most: number) => db<Given[]>`
  with picked as materialized (
    select id from skeleton_runs where status = 'queued' order by id limit ${most} for update skip locked
  )
  update skeleton_runs r
  set status = 'running'
  from picked
  where r.id = picked.id
  returning r.id, r.input`

const complete = (db: Db, runs: readonly Done[]) => db`
  update skeleton_runs r
  set status = 'completed', output = done.output
  from unnest(${runs.map(({ id }) => id)}::text[], ${runs.map(({ output }) => output)}::text[]) as done (id, output)
  where r.id = done.id`
