import { aSession } from '@windlass/coordinator/test/_kit/credentials.ts'
import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import { createClient } from 'windlass/client'
import type { BenchInstance } from './bench-instance.ts'
import { reportDelays } from './delays.ts'
import { openPoster, type Poster } from './http-load.ts'
import { now, wait } from './measure.ts'
import type { Report } from './row.ts'
import { settled } from './settled.ts'

const PER_SECOND = 200
const SECONDS = 10
/** Far more than are under way at once. */
const CONNECTIONS = 64
const LINES = 60
const WARM_UP = 20
const AWAY_MS = 60

/** A delivery at a webhook until its answer, and until the first line of the program that it starts. */
export async function benchWebhooks(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  const answers: number[] = []
  const open = await hookOf(instance, 'noop-reuse')
  await answersOf(instance, open, 1)
  for (let i = 0; i < repeats; i++) answers.push(...(await answersOf(instance, open, SECONDS)))
  reportDelays(report, { name: `webhook to 200 at ${PER_SECOND}/s`, samples: answers, repeats })
  const lines = await firstLinesOf(instance, await hookOf(instance, 'first-line-reuse'), repeats)
  reportDelays(report, { name: 'webhook to first line, reuse', samples: lines, repeats })
}

type Open = () => Promise<Poster>

/** Connections that deliver to the webhook of a workflow. By its bearer: each delivery is one of its own. */
async function hookOf({ url, db }: BenchInstance, workflow: string): Promise<Open> {
  const [{ id }] = await db<[{ id: OrgId }]>`select id from orgs where slug = 'default'`
  const client = createClient({ url, session: await aSession(db, { orgId: id }), org: 'default' })
  await client.webhooks.set({ workflow, auth: 'bearer' })
  const { webhook, secret } = await client.webhooks.rotate({ workflow })
  return () => openPoster({ url, path: `/v1/hooks/${webhook.id}`, apiKey: secret, body: '{}' })
}

async function delivered(poster: Poster): Promise<RunId> {
  const { status, body } = await poster.post()
  const { runs } = JSON.parse(body) as { runs?: { id: RunId }[] }
  const run = runs?.[0]
  if (status !== 200 || !run) throw new Error(`a delivery was answered ${status}: ${body}`)
  return run.id
}

/** Milliseconds from the planned time of each to its answer: one that waits for a connection waits for the service. */
async function answersOf(instance: BenchInstance, open: Open, seconds: number): Promise<number[]> {
  const posters = await Promise.all(Array.from({ length: CONNECTIONS }, open))
  const took: number[] = []
  const begun = now()
  let n = 0
  const lane = async (poster: Poster) => {
    while (n < PER_SECOND * seconds) {
      const at = begun + (n++ * 1000) / PER_SECOND
      await wait(Math.max(0, at - now()))
      await delivered(poster)
      took.push(now() - at)
    }
  }
  await Promise.all(posters.map(lane))
  await settled(instance, () => Promise.resolve(true))
  for (const poster of posters) poster.close()
  return took
}

/** One at a time. Outputs are read when all have ended: each request would be work in the way. */
async function firstLinesOf(instance: BenchInstance, open: Open, repeats: number): Promise<number[]> {
  const poster = await open()
  const one = async () => {
    const sentAt = now()
    const run = await delivered(poster)
    await wait(AWAY_MS)
    await settled(instance, () => Promise.resolve(true))
    return { sentAt, run }
  }
  for (let i = 0; i < WARM_UP; i++) await one()
  const sent: Awaited<ReturnType<typeof one>>[] = []
  while (sent.length < LINES * repeats) sent.push(await one())
  poster.close()
  const lines: number[] = []
  for (const { run, sentAt } of sent) {
    const { output } = await instance.client.runs.output({ run })
    lines.push(Number((output as [string, string])[0]) / 1e6 - sentAt)
  }
  return lines
}
