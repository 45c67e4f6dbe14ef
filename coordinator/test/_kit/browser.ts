/** A page in a real browser, by the DevTools protocol: Debian's chromium, headless. */
import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { within } from '@windlass/shared/time.ts'

const PATIENCE_MS = 30_000

/** Where the browser is, or undefined: then a test that needs one says so and is skipped. */
export function findBrowser(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter)
  const names = ['chromium', 'chromium-browser', 'google-chrome']
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable)
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

export interface Page {
  /** Addresses of all requests so far. */
  readonly requests: readonly string[]
  /** What the console and the content security policy complained of. */
  readonly complaints: readonly string[]
  open(url: string): Promise<void>
  /** The value of an expression; a promise is waited for. */
  evaluate<T>(expression: string): Promise<T>
  /** Clicks the one element that the selector names. */
  click(selector: string): Promise<void>
  /** Types into the element that has the focus. */
  type(text: string): Promise<void>
  screenshot(): Promise<Buffer>
  close(): Promise<void>
}

const FLAGS = [
  '--headless=new',
  // Tests run as root in containers, where its sandbox cannot be.
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--disable-extensions',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-breakpad',
  '--remote-debugging-port=0',
  '--window-size=1280,1600',
  // Nothing but this machine can be found at all.
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
]

export async function openBrowser(executable: string): Promise<Page> {
  const profile = await mkdtemp(join(tmpdir(), 'windlass-browser-'))
  // In a group of its own: it has children that outlive it for a moment.
  const child = spawn(executable, [...FLAGS, `--user-data-dir=${profile}`, 'about:blank'], {
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const stop = async () => {
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    await gone
    await rm(profile, { recursive: true, force: true, maxRetries: 5 })
  }
  try {
    const devtools = await connect(await within(PATIENCE_MS, addressOf(child), 'the browser does not start'))
    return await attach(devtools, stop)
  } catch (error) {
    await stop()
    throw error
  }
}

async function addressOf(child: ChildProcess): Promise<string> {
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stderr! })) {
    const found = /DevTools listening on (ws:\S+)/.exec(line)
    if (found) {
      child.stderr!.resume()
      return found[1]!
    }
    lines.push(line)
  }
  throw new Error(`the browser ended: ${lines.join('\n')}`)
}

type Answer = Record<string, unknown>
interface Message {
  id?: number
  method?: string
  params?: Answer
  result?: Answer
  error?: { message: string }
}

interface DevTools {
  send(method: string, params?: object, sessionId?: string): Promise<Answer>
  on(listen: (method: string, params: Answer) => void): void
  close(): void
}

async function connect(address: string): Promise<DevTools> {
  const socket = new WebSocket(address)
  const waiting = new Map<number, { resolve(answer: Answer): void; reject(error: Error): void }>()
  const listeners: ((method: string, params: Answer) => void)[] = []
  socket.addEventListener('message', ({ data }) => {
    const { id, method, params, result, error } = JSON.parse(String(data)) as Message
    if (method !== undefined) for (const listen of listeners) listen(method, params ?? {})
    const asked = id === undefined ? undefined : waiting.get(id)
    if (error) asked?.reject(new Error(error.message))
    else asked?.resolve(result ?? {})
  })
  const opened = new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve())
    socket.addEventListener('error', () => reject(new Error('the browser does not answer')))
  })
  await within(PATIENCE_MS, opened, 'the browser does not answer')
  let last = 0
  return {
    send(method, params = {}, sessionId) {
      const id = ++last
      const answer = new Promise<Answer>((resolve, reject) => waiting.set(id, { resolve, reject }))
      socket.send(JSON.stringify({ id, method, params, ...(sessionId !== undefined && { sessionId }) }))
      return within(PATIENCE_MS, answer, `the browser does not answer ${method}`)
    },
    on: (listen) => void listeners.push(listen),
    close: () => socket.close(),
  }
}

async function attach(devtools: DevTools, stop: () => Promise<void>): Promise<Page> {
  const { targetId } = await devtools.send('Target.createTarget', { url: 'about:blank' })
  const { sessionId } = await devtools.send('Target.attachToTarget', { targetId, flatten: true })
  const send = (method: string, params?: object) => devtools.send(method, params, sessionId as string)
  const requests: string[] = []
  const complaints: string[] = []
  devtools.on((method, params) => {
    if (method === 'Network.requestWillBeSent') requests.push((params['request'] as { url: string }).url)
    if (method === 'Log.entryAdded') complaints.push((params['entry'] as { text: string }).text)
    if (method === 'Runtime.exceptionThrown') complaints.push(JSON.stringify(params['exceptionDetails']))
  })
  for (const domain of ['Network', 'Log', 'Runtime', 'Page']) await send(`${domain}.enable`)
  const evaluate = async <T>(expression: string): Promise<T> => {
    const asked = { expression, awaitPromise: true, returnByValue: true }
    const { result, exceptionDetails } = await send('Runtime.evaluate', asked)
    if (exceptionDetails) throw new Error(`${expression}: ${JSON.stringify(exceptionDetails)}`)
    return (result as { value: T }).value
  }
  return {
    requests,
    complaints,
    evaluate,
    open: async (url) => void (await send('Page.navigate', { url })),
    async click(selector) {
      const text = JSON.stringify(selector)
      const isThere = await evaluate<boolean>(
        `(() => { const at = document.querySelector(${text}); at?.focus(); at?.click(); return at !== null })()`,
      )
      if (!isThere) throw new Error(`the page has no ${selector}`)
    },
    type: async (text) => void (await send('Input.insertText', { text })),
    async screenshot() {
      const { data } = await send('Page.captureScreenshot', { format: 'png' })
      return Buffer.from(data as string, 'base64')
    },
    async close() {
      devtools.close()
      await stop()
    },
  }
}
