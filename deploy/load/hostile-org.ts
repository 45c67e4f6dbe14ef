import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { opened } from '@windlass/coordinator/test/_kit/journal.ts'
import { mintSecret } from '@windlass/shared/api-key.ts'
import type { Entry, Offer } from '@windlass/shared/wire/agent.ts'
import type { Client } from 'windlass/client'
import { startSimulatedAgent } from './simulated-agent.ts'

/** One of two orgs of a coordinator: its members and its agent send what they may, so that all others wait. */
interface HostileOrg {
  url: string
  client: Client
  /** For an agent of its own, which says what no honest program would. */
  token: string
  /** Its workflows are named apart from those of another attack. */
  round?: number
}

/** How often each act was done, and what became of it: `ok`, or the code of the refusal. */
export type Outcomes = Map<string, Map<string, number>>

const TYPES = `interface Group { next?: Group | Rule; value?: string }
interface Rule { next?: Group | Rule; value?: string }
`
const nested = (levels: number, leaf: unknown): unknown => (levels === 0 ? leaf : { next: nested(levels - 1, leaf) })
/** 200 bytes that fit the types in no way, of which there are ten times as many with every two levels. */
const ENDLESS = nested(22, { value: 5 })
const PATTERN = JSON.stringify({ type: 'string', pattern: '^(a|a)*$' })
const HANGS = `${'a'.repeat(60)}b`
const QUESTIONS = 400
const LARGE_BYTES = 12_000_000
/** Of each act under way at once. */
const LANES = 3

const names = (count: number) => Array.from({ length: count }, (_, n) => `'k${n}'`).join(' | ')
/** Types that take the compiler's time, its memory, and the time of whoever compiles the schema made of them. */
const BOMBS = [
  `type Twice<T extends string> = \`\${T}\${T}\`
   type A = Twice<Twice<Twice<Twice<Twice<Twice<Twice<Twice<'0123456789abcdef'>>>>>>>>
   type B = Twice<Twice<Twice<Twice<Twice<Twice<Twice<Twice<A>>>>>>>>
   type Input = { value: Uppercase<Twice<Twice<Twice<Twice<Twice<Twice<Twice<Twice<B>>>>>>>>> }`,
  `type Column = ${names(300)}
   type Input = { [A in Column]: { [B in Column]?: number } }`,
  `type Deep<T, N extends unknown[] = []> = N['length'] extends 900 ? T : Deep<[T, T], [...N, 0]>
   type Input = Deep<string>`,
]

function deploy(client: Client, slug: string, source: string, more: Record<string, string> = {}) {
  const all = { 'workflow.jsonc': `{ "slug": "${slug}" }`, 'index.ts': source, ...more }
  return client.workflows.create({ files: Object.entries(all).map(([path, content]) => ({ path, content })) })
}

/** Sends until the signal fires, each act so often a second as the limits of a caller allow. */
export async function attack({ url, client, token, round = 0 }: HostileOrg, signal: AbortSignal): Promise<Outcomes> {
  const named = (slug: string) => `${slug}-${round}`
  await deploy(client, named('takes'), `${TYPES}export const run = (input: Group): string => typeof input`)
  await deploy(client, named('returns'), `${TYPES}export const run = (): Group => ({})`)
  await deploy(client, named('asks'), 'export const run = () => 1')
  const agent = await startSimulatedAgent({
    url,
    token,
    slots: 20,
    onRun: (offer, self) => {
      self.send({ t: 'entries', batches: [{ run: offer.run, epoch: offer.epoch, first: 1, entries: lies(offer) }] })
      setTimeout(() => self.release(offer.run), 1000).unref()
    },
    // A coordinator may have had enough of it.
    onClosed: () => undefined,
  })
  let n = 0
  const acts: Record<string, { everyMs: number; act: () => Promise<unknown> }> = {
    types: { everyMs: 500, act: () => deploy(client, named(`bomb-${++n}`), bomb(n)) },
    files: { everyMs: 1000, act: () => deploy(client, named(`large-${++n}`), 'export const run = () => 1', large()) },
    inputs: { everyMs: 250, act: () => client.runs.trigger({ workflow: named('takes'), input: ENDLESS }) },
    quotes: { everyMs: 250, act: () => client.runs.trigger({ workflow: named('asks'), input: '"'.repeat(500_000) }) },
    outputs: { everyMs: 250, act: () => client.runs.trigger({ workflow: named('returns') }) },
    questions: { everyMs: 1000, act: () => client.runs.trigger({ workflow: named('asks') }) },
    keys: { everyMs: 10, act: () => unknownKey(url) },
  }
  const outcomes: Outcomes = new Map()
  const lanes = Object.entries(acts).flatMap(([name, { everyMs, act }]) =>
    Array.from({ length: LANES }, () =>
      repeat({ everyMs: everyMs * LANES, act, note: noteIn(outcomes, name) }, signal),
    ),
  )
  await Promise.all(lanes)
  agent.close()
  return outcomes
}

const bomb = (n: number) => `${BOMBS[n % BOMBS.length]}\nexport const run = (input: Input): string => typeof input`
const large = () => ({ 'data.txt': 'x'.repeat(LARGE_BYTES) })

/** What its agent says of a run. */
function lies({ workflow }: Offer): Entry[] {
  const at = Date.now()
  const end: Entry = ['end', at, { how: 'returned', outputText: JSON.stringify(ENDLESS) }, 0]
  if (!workflow.slug.startsWith('asks-')) return [['start', at], end]
  return [['start', at], ...Array.from({ length: QUESTIONS }, (_, n) => question(n + 1))]
}

const question = (n: number): Entry =>
  opened(n, {
    for: 'input',
    prompt: 'Go on?',
    schemaText: PATTERN,
    timeoutMs: 60_000,
    onTimeoutText: JSON.stringify(HANGS),
  })

/** Refused credentials are counted by address. Its own is not that of the honest, as it would be on a network. */
const ITS_ADDRESS = '127.0.0.2'

async function unknownKey(url: string): Promise<void> {
  const headers = { authorization: `Bearer ${mintSecret('wl_')}` }
  const asked = request(`${url}/v1/me`, { headers, localAddress: ITS_ADDRESS, agent: false }).end()
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  response.resume()
  throw Object.assign(new Error('refused'), { code: String(response.statusCode) })
}

interface Repeated {
  everyMs: number
  act: () => Promise<unknown>
  note: (outcome: string) => void
}

async function repeat({ everyMs, act, note }: Repeated, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const pace = wait(everyMs, undefined, { signal }).catch(() => undefined)
    await act().then(
      () => note('ok'),
      (error: { code?: string }) => note(error.code ?? 'failed'),
    )
    await pace
  }
}

function noteIn(outcomes: Outcomes, name: string): (outcome: string) => void {
  const counts = outcomes.get(name) ?? new Map<string, number>()
  outcomes.set(name, counts)
  return (outcome) => void counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
}

/** As lines: `inputs: 12 VALIDATION_FAILED, 3 RATE_LIMITED`. */
export function outcomesText(outcomes: Outcomes): string {
  const each = [...outcomes].map(
    ([name, counts]) => `${name}: ${[...counts].map(([outcome, n]) => `${n} ${outcome}`).join(', ')}`,
  )
  return each.join('; ')
}
