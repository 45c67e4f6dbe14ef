import { Fault } from '@windlass/shared/errors.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Handlers } from '../api/index.ts'
import type { Sizes } from '../sizes.ts'
import type { Asking } from './asking.ts'
import { callTool } from './call-tool.ts'
import { CALL_MS } from './deadlines.ts'
import { complete, type CompletionAsk } from './complete.ts'
import { type Fields, mayCall } from './invoke.ts'
import { listResources, readResource, type ListedResource, type ListedTemplate, type ReadText } from './resources.ts'
import { TEMPLATES } from './resources.ts'
import { failureOf, type ToolResult } from './result.ts'
import { type ListedTool, tablesOf, type ToolPlan } from './table.ts'
import { createToolPrinter } from './tool-list.ts'

/** What there is to be had over MCP, for whoever asks. The protocol itself is server.ts. */
export interface Surface {
  /** The list of what the caller may call, as JSON text. */
  tools(asking: Asking): string
  /**
   * Settles with a result for everything but a name that no tool has: before `leftMs` are over, where that is less than
   * a call may take.
   */
  call(asking: Asking, name: string, given: Fields, leftMs?: number): Promise<ToolResult>
  templates: readonly ListedTemplate[]
  resources(asking: Asking): Promise<ListedResource[]>
  read(asking: Asking, uri: string): Promise<ReadText>
  complete(asking: Asking, ask: CompletionAsk): Promise<string[]>
  /** The largest request that the caller could have a use for. */
  mostBytes(asking: Pick<Asking, 'caller'>): number
}

/** What the coordinator shows to one kind of caller. */
interface View {
  tools: readonly ListedTool[]
  mostBytes: number
}

/** Far more than there are sensible lists of scopes. */
const MOST_VIEWS = 500
/** Even a caller without any tool sends an `initialize`. */
const LEAST_BYTES = 1024 * 1024

interface SurfaceOptions {
  /** The defaults, unless given. */
  sizes?: Sizes
  /** Longest that a call may take; 28 s unless given. */
  mostMs?: number
}

/** The operations of the coordinator as tools, its logs and files as resources. */
export function createSurface(handlers: Handlers, { sizes, mostMs = CALL_MS }: SurfaceOptions = {}): Surface {
  const { tools, planOf } = tablesOf(handlers, sizes)
  const views = new Map<string, View>()
  const print = createToolPrinter()
  return {
    tools: (asking) => print(viewOf(asking).tools),
    call: (asking, name, given, leftMs = Infinity) =>
      inTime(Math.min(mostMs, leftMs - BEFORE_END_MS), callTool(tools, asking, name, given)),
    templates: TEMPLATES,
    resources: (asking) => listResources(planOf, asking),
    read: (asking, uri) => readResource(planOf, asking, uri),
    complete: (asking, ask) => complete(planOf, asking, ask),
    mostBytes: (asking) => viewOf(asking).mostBytes,
  }

  function viewOf(asking: Pick<Asking, 'caller'>): View {
    const { role, scopes } = asking.caller
    const key = `${role} ${scopes.toSorted().join()}`
    const known = views.get(key)
    if (known) return known
    if (views.size >= MOST_VIEWS) views.clear()
    // What is left out cannot be called; a stub is there for everybody, and tells where to go instead.
    const shown = [...tools.values()].filter(({ plan, instead }) => instead !== undefined || mayCall(plan, asking))
    const view = { tools: shown.map(({ listed }) => listed), mostBytes: mostBytes(shown) }
    views.set(key, view)
    return view
  }
}

function mostBytes(shown: readonly ToolPlan[]): number {
  return Math.max(LEAST_BYTES, ...shown.map(({ plan, instead }) => (instead === undefined ? plan.bodyBytes : 0)))
}

/** A call is answered before the time of its request is over, which knows no better than to refuse it. */
const BEFORE_END_MS = 250

const LOOK_FIRST =
  'It may still come to its end: look at what it was to do (get_workflow, list_runs, get_run) before you call it again.'

/** What takes longer goes on without its caller: a deploy whose types are hard to read, or anything while the database stands still. */
async function inTime(mostMs: number, calling: Promise<ToolResult>): Promise<ToolResult> {
  const answered = new AbortController()
  const late = pause(mostMs, answered.signal).then(() => {
    const waitedMs = Math.round(mostMs)
    const message = `The call has not come to its end within ${waitedMs / 1000} s.`
    return failureOf(new Fault('UNAVAILABLE', { waitedMs }, message), LOOK_FIRST)
  })
  try {
    return await Promise.race([calling, late])
  } finally {
    answered.abort()
  }
}
