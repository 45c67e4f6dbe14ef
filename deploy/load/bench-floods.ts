import { createClient } from 'windlass/client'
import { anOrg } from '@windlass/coordinator/test/_kit/coordinator.ts'
import { answerDelays } from './answer-delays.ts'
import type { BenchInstance } from './bench-instance.ts'
import { reportDelays } from './delays.ts'
import { floodsOf } from './floods.ts'
import type { Report } from './row.ts'

const LOOKED_MS = 8_000

/** Measures the triggers of one org while another one sends a flood: 600 connections of one sort at a time. */
export async function benchFloods(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  const { url, db } = instance
  const calm = await anOrg({ db }, 'calm')
  const client = createClient({ url, org: calm.slug, apiKey: calm.apiKey })
  const files = { 'workflow.jsonc': '{ "slug": "calm" }', 'index.ts': 'export const run = () => 1' }
  await client.workflows.create({ files: Object.entries(files).map(([path, content]) => ({ path, content })) })
  const headers = { authorization: `Bearer ${calm.apiKey}`, 'content-type': 'application/json' }
  const path = `/v1/orgs/${calm.slug}/workflows/calm/runs`
  const trigger = { url: url + path, method: 'POST', headers, body: '{}', expect: 201 } as const

  const floods = [{ name: 'nothing else', send: () => Promise.resolve() }, ...(await floodsOf(instance))]
  const samples = floods.map((): number[] => [])
  for (let i = 0; i < repeats; i++)
    for (const [n, { send }] of floods.entries()) {
      const over = AbortSignal.timeout(LOOKED_MS)
      const [delays] = await Promise.all([answerDelays(trigger, over), send(over)])
      samples[n]!.push(...delays)
    }
  for (const [n, { name }] of floods.entries())
    reportDelays(report, { name: `trigger while another org sends ${name}`, samples: samples[n]!, repeats })
}
