import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DESCRIPTOR_FILE } from '@windlass/shared/model/descriptor.ts'
import { CHANNELS, EVENT_PAGE_LEAST, type RunEvent } from '@windlass/shared/model/event.ts'
import { isFinal, type Run } from '@windlass/shared/model/run.ts'
import type { Client } from 'windlass/client'
import { DEADLINE_MS, until } from './until.ts'

const PROGRAMS = join(import.meta.dirname, '../programs')
const PAGE = 1000

export type Files = Record<string, string>

/** The files of one of the programs beside the tests, with another descriptor where one is given. */
export function programFiles(name: string, descriptor?: object): Files {
  const folder = join(PROGRAMS, name)
  const files = Object.fromEntries(readdirSync(folder).map((file) => [file, readFileSync(join(folder, file), 'utf8')]))
  return descriptor ? { ...files, [DESCRIPTOR_FILE]: JSON.stringify(descriptor) } : files
}

export async function deploy(client: Client, files: Files): Promise<void> {
  await client.workflows.create({ files: Object.entries(files).map(([path, content]) => ({ path, content })) })
}

export async function trigger(client: Client, workflow: string, input?: unknown): Promise<string> {
  return (await client.runs.trigger({ workflow: workflow, input })).run.id
}

export async function get(client: Client, run: string): Promise<Run> {
  return (await client.runs.get({ run: run })).run
}

/** The run as it stands when it has ended. */
export function ended(client: Client, run: string, ms = DEADLINE_MS): Promise<Run> {
  let last = ''
  const look = async () => {
    const found = await get(client, run)
    last = found.status
    return isFinal(found.status) && found
  }
  return until(`the end of ${run}`, look, { ms, more: () => `It is ${last}.` })
}

/** The run once an event of this type is in its log. */
export async function hasSaid(client: Client, run: string, type: string, text = ''): Promise<void> {
  const isIt = (event: RunEvent) => event.type === type && JSON.stringify(event.data).includes(text)
  await until(`${type} ${text} of ${run}`, async () => (await wholeLog(client, run)).some(isIt))
}

/** All events of all channels. */
export async function wholeLog(client: Client, run: string): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for (;;) {
    const page = await client.runs.events({
      run: run,
      since: events.at(-1)?.cursor ?? 0,
      channels: [...CHANNELS],
      limit: PAGE,
    })
    for (const event of page.events) events.push(event)
    if (page.done || page.events.length < EVENT_PAGE_LEAST) return events
  }
}

export function typesOf(events: readonly RunEvent[], channel: RunEvent['channel'] = 'lifecycle'): string[] {
  return events.filter((event) => event.channel === channel).map((event) => event.type)
}

export function textsOf(events: readonly RunEvent[]): string[] {
  return events.filter((event) => event.channel === 'log').map((event) => String(event.data['text']))
}
