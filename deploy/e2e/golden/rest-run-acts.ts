import type { RestTranscript } from './rest.ts'
import { filesOf } from './transcript.ts'

const TOO_LARGE = 'x'.repeat(1_300_000)

/** Runs from their trigger to their end, and questions. */
export async function runActs(rest: RestTranscript): Promise<void> {
  await rest.org.client.workflows.create({ files: filesOf('plays', { slug: 'plays', cancelGrace: '1s' }) })
  await rest.org.client.workflows.update({ workflow: 'greet', files: filesOf('typed', { slug: 'greet' }) })
  await triggerActs(rest)
  const first = await readingActs(rest)
  await questionActs(rest)
  await endingActs(rest, first)
  await listActs(rest)
}

async function triggerActs(rest: RestTranscript): Promise<void> {
  const path = 'POST /v1/orgs/rest/workflows/greet/runs'
  const body = { input: { name: 'Ada' }, idempotencyKey: 'order-7' }
  const { run } = await rest.act('trigger with a key of its own', path, { body })
  await rest.ended(run.id)
  await rest.act('trigger again with the same key', path, { body })
  await rest.act('trigger another request with the same key', path, { body: { ...body, input: { name: 'Bob' } } })
  await rest.act('trigger with an input that does not fit', path, { body: { input: { name: 7 } } })
  await rest.act('trigger with a field that is none', path, { body: { input: { name: 'Ada' }, colour: 'red' } })
  await rest.act('trigger a version that is none', path, { body: { input: { name: 'Ada' }, version: 99 } })
  await rest.act('trigger in an environment that is none', path, { body: { input: { name: 'A' }, environment: 'x' } })
  await rest.act('trigger too much', path, { body: { input: { name: TOO_LARGE } } })
  await rest.act('trigger what is no JSON', path, { body: '{"input":' })
  await rest.act('trigger in a form', path, { body: 'a=1', headers: { 'content-type': 'text/plain' } })
  await rest.act('trigger no workflow', 'POST /v1/orgs/rest/workflows/absent/runs', { body: {} })
}

async function readingActs(rest: RestTranscript): Promise<string> {
  const body = { input: { name: 'Ada', times: 2 }, tags: ['first', 'of-two'], priority: 5 }
  const { run } = await rest.act('trigger', 'POST /v1/orgs/rest/workflows/greet/runs', { body })
  const path = `/v1/runs/${run.id}`
  await rest.ended(run.id)
  await rest.act('get a run', `GET ${path}`)
  await rest.act('get its input', `GET ${path}/input`)
  await rest.act('get its output', `GET ${path}/output`)
  await rest.act('why a run that has ended is where it is', `GET ${path}/why`)
  await rest.act('get its events', `GET ${path}/events`)
  await rest.act('get some of its events', `GET ${path}/events?since=1&channels=lifecycle,log&limit=2`)
  await rest.act('get events of a channel that is none', `GET ${path}/events?channels=noise`)
  await rest.act('follow its events', `GET ${path}/events/stream?channels=lifecycle,output`)
  await rest.act('follow from an event on', `GET ${path}/events/stream`, { headers: { 'last-event-id': '3' } })
  await rest.act('list its children', `GET ${path}/children`)
  await rest.act('get a run that is none', `GET /v1/runs/run_${'0'.repeat(26)}`)
  await rest.act('get by an id that is none', 'GET /v1/runs/run-1')
  return run.id
}

async function questionActs(rest: RestTranscript): Promise<void> {
  const { run } = await rest.org.client.runs.trigger({ workflow: 'plays', input: { play: 'asks' } })
  const stage = rest.watch(run.id)
  await stage.sees('run.awaiting_input')
  const { id } = await stage.question('Ship 1.4.2?')
  await rest.act('get a run that asks', `GET /v1/runs/${run.id}`)
  await rest.act('why it waits', `GET /v1/runs/${run.id}/why`)
  await rest.act('get the output of a run that goes on', `GET /v1/runs/${run.id}/output`)
  await rest.act('list questions', `GET /v1/orgs/rest/inputs?run=${run.id}`)
  await rest.act('get a question', `GET /v1/inputs/${id}`)
  await rest.act('answer what does not fit', `POST /v1/inputs/${id}/respond`, { body: { answer: { approved: 'yes' } } })
  await rest.act('answer', `POST /v1/inputs/${id}/respond`, { body: { answer: { approved: true } } })
  await stage.over()
  await rest.act('answer again', `POST /v1/inputs/${id}/respond`, { body: { answer: { approved: false } } })
}

async function endingActs(rest: RestTranscript, first: string): Promise<void> {
  const { run } = await rest.act('trigger with a delay', 'POST /v1/orgs/rest/workflows/plays/runs', {
    body: { input: { play: 'returns' }, delayMs: 3_600_000 },
  })
  await rest.act('why it is not yet in the queue', `GET /v1/runs/${run.id}/why`)
  await rest.act('restart what is not blocked', `POST /v1/runs/${run.id}/restart`)
  await rest.act('cancel', `POST /v1/runs/${run.id}/cancel`, { body: { reason: 'not needed' } })
  await rest.act('cancel again', `POST /v1/runs/${run.id}/cancel`)
  await rest.act('cancel what has ended', `POST /v1/runs/${first}/cancel`)
  const { run: again } = await rest.act('retry', `POST /v1/runs/${first}/retry`)
  await rest.ended(again.id)
  await rest.act('retry with a version that is none', `POST /v1/runs/${first}/retry`, { body: { version: 99 } })
}

async function listActs(rest: RestTranscript): Promise<void> {
  const path = '/v1/orgs/rest/runs'
  const { nextCursor } = await rest.act('list runs, a page', `GET ${path}?limit=2`)
  await rest.act('list runs, the next page', `GET ${path}?limit=1&cursor=${nextCursor}`)
  await rest.act('list runs by status and workflow', `GET ${path}?status=completed&workflow=plays`)
  await rest.act('list runs by tag', `GET ${path}?tag=first`)
  await rest.act('list runs by a status that is none', `GET ${path}?status=dreaming`)
  await rest.act('list runs with a wrong cursor', `GET ${path}?cursor=nowhere`)
  await rest.act('list runs with a name given twice', `GET ${path}?limit=1&limit=2`)
}
