import { CUT_MARK } from '@windlass/shared/cut-mark.ts'
import { Fault } from '@windlass/shared/errors.ts'
import { CHANNELS, type RunEvent } from '@windlass/shared/model/event.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { DESCRIPTOR_FILE } from '@windlass/shared/model/descriptor.ts'
import { LINE_BREAK } from '@windlass/shared/line-break.ts'
import type { Workflow } from '@windlass/shared/model/workflow.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Asking } from './asking.ts'
import { missingFile } from '../workflows/read.ts'
import { type Fields, invoke, invokeForFiles, mayCall } from './invoke.ts'
import type { PlanOf } from './table.ts'

/** A resource is asked for by a person or a program, not by the way: it may be longer than an answer of a tool. */
const MOST_CHARS = 200_000
/** How many of the newest workflows and runs are listed; the templates reach all. */
const LISTED = 10
const LOG_PAGE = 1000
/** Of the fields of a log line. */
const MOST_FIELDS_CHARS = 4000

export const RUN_EVENTS = 'windlass://runs/{run}/events'
export const WORKFLOW_FILE = 'windlass://workflows/{workflow}/files/{+path}'

export interface ListedResource {
  uri: string
  name: string
  title: string
  mimeType: string
  [key: string]: unknown
}

export interface ListedTemplate {
  uriTemplate: string
  name: string
  title: string
  description: string
  mimeType?: string
  [key: string]: unknown
}

export interface ReadText {
  uri: string
  mimeType: string
  text: string
  [key: string]: unknown
}

export const TEMPLATES: readonly ListedTemplate[] = [
  {
    uriTemplate: RUN_EVENTS,
    name: 'run-events',
    title: 'Log of a run',
    description:
      'All events of a run as lines of text: status changes, phases, what it printed and returned. Each begins with ' +
      '`#` and its cursor. Further lines of a text stand behind `│`, the fields of a log line behind `fields:`, both ' +
      'indented.',
    mimeType: 'text/plain',
  },
  {
    uriTemplate: WORKFLOW_FILE,
    name: 'workflow-file',
    title: 'File of a workflow',
    description: 'One file of the current version of a workflow, by the slug or id of the workflow.',
  },
]

/** What is likely to be looked at: the newest workflows by their descriptors, the newest runs by their logs. */
export async function listResources(planOf: PlanOf, asking: Asking): Promise<ListedResource[]> {
  const newest = async (plan: ReturnType<PlanOf>) =>
    mayCall(plan, asking) ? await invoke(plan, asking, { limit: LISTED }) : {}
  const { workflows = [] } = (await newest(planOf(ops.workflows.list))) as { workflows?: Workflow[] }
  const { runs = [] } = (await newest(planOf(ops.runs.list))) as { runs?: Run[] }
  return [
    ...workflows.map(({ slug, name }) => ({
      uri: `windlass://workflows/${slug}/files/${DESCRIPTOR_FILE}`,
      name: `${slug}/${DESCRIPTOR_FILE}`,
      title: `Descriptor of ${name}`,
      mimeType: 'application/json',
    })),
    ...runs.map(({ id, workflow, status }) => ({
      uri: `windlass://runs/${id}/events`,
      name: id,
      title: `Log of a run of ${workflow.slug}, ${status}`,
      mimeType: 'text/plain',
    })),
  ]
}

export async function readResource(planOf: PlanOf, asking: Asking, uri: string): Promise<ReadText> {
  const run = /^windlass:\/\/runs\/([^/?#]+)\/events$/.exec(uri)
  if (run) return { uri, mimeType: 'text/plain', text: await logText(planOf, asking, run[1]!) }
  const file = /^windlass:\/\/workflows\/([^/?#]+)\/files\/([^?#]+)$/.exec(uri)
  if (file) return readFile(planOf, asking, { uri, workflow: file[1]!, path: decoded(file[2]!) })
  throw new Fault('NOT_FOUND', { uri }, `There is no such resource; there are ${RUN_EVENTS} and ${WORKFLOW_FILE}.`)
}

async function logText(planOf: PlanOf, asking: Asking, run: string): Promise<string> {
  const lines: string[] = []
  let room = MOST_CHARS
  let since = 0
  for (;;) {
    const query: Fields = { run, since, channels: [...CHANNELS], limit: LOG_PAGE }
    const page = (await invoke(planOf(ops.runs.events), asking, query)) as { events: RunEvent[]; done: boolean }
    for (const event of page.events) {
      const line = lineOf(event)
      room -= line.length + 1
      if (room < 0) return [...lines, goOn(since, 'This resource ends here, to stay short.')].join('\n')
      lines.push(line)
      since = event.cursor
    }
    if (page.done) return lines.join('\n')
    if (page.events.length === 0) return [...lines, goOn(since, 'The run goes on.')].join('\n')
  }
}

function goOn(since: number, why: string): string {
  return `[${why} For what follows call get_run_output with \`since\` ${since}.]`
}

/**
 * `#12 2026-11-21T14:03:07.123Z log.stdout hello`. A stranger may have written the text, with line breaks in it: what
 * begins a line is ours alone.
 */
function lineOf({ cursor, at, type, data, channel }: RunEvent): string {
  const { text, fields } = data
  const isText = channel === 'log' && typeof text === 'string'
  const lines = isText ? text.trimEnd().split(LINE_BREAK) : [jsonLine(data)]
  const head = `#${cursor} ${new Date(at).toISOString()} ${type} ${lines.join('\n  │ ')}`.trimEnd()
  return isText && fields !== undefined ? `${head}\n  fields: ${cut(jsonLine(fields))}` : head
}

/** JSON escapes all but three of what some take for the end of a line. */
function jsonLine(value: unknown): string {
  const escape = (each: string) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`
  return JSON.stringify(value).replace(/[\u0085\u2028\u2029]/g, escape)
}

function cut(text: string): string {
  return text.length > MOST_FIELDS_CHARS ? `${text.slice(0, MOST_FIELDS_CHARS)}${CUT_MARK}` : text
}

interface FileAsk {
  uri: string
  workflow: string
  path: string
}

async function readFile(planOf: PlanOf, asking: Asking, { uri, workflow, path }: FileAsk): Promise<ReadText> {
  const files = await invokeForFiles(planOf(ops.workflows.get), asking, { workflow })
  const file = await files.read(path, MOST_CHARS)
  if (!file) throw await missingFile(files, workflow, path)
  const { text, chars } = file
  return { uri, mimeType: mimeOf(path), text: chars <= MOST_CHARS ? text : `${text}\n${goOnReading(text, chars)}` }
}

function goOnReading({ length }: string, chars: number): string {
  const why = `[This resource ends here, to stay short: the file has ${chars} characters.`
  return `${why} get_workflow_file reads it on from \`offset\` ${length}.] ${CUT_MARK}`
}

function mimeOf(path: string): string {
  if (/\.jsonc?$/.test(path)) return 'application/json'
  if (path.endsWith('.md')) return 'text/markdown'
  return /\.[cm]?[jt]sx?$/.test(path) ? 'text/javascript' : 'text/plain'
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    throw new Fault('NOT_FOUND', { path }, `\`${path}\` is not percent-encoded UTF-8.`)
  }
}
