import { sitesHere } from './stacks.ts'

/** A timer, an immediate or a handle of Node, which does not keep the process. */
interface Unrefed {
  hasRef?(): boolean
}

/** A timer or immediate that will do nothing any more. Handles are forgotten when they are closed. */
const hasEnded = (each: Unrefed) => Reflect.get(each, '_destroyed') === true

/** By its methods. They are named as strings, because it may have others. */
type Prototype = Record<string, unknown>
type Method = (this: Unrefed, ...args: unknown[]) => unknown

// Deep enough to find who asked for it behind Node's own frames.
const FRAMES = 20
const MOST_UNSORTED = 1_000

/**
 * Connections that fetch and http keep for the next request, and clocks of `AbortSignal.timeout`: Node lets them go on
 * by itself, and after a run nothing follows from them.
 */
const OF_NODE = /^node:(internal\/deps\/undici|_http_agent|internal\/abort_controller)/

/**
 * Notes what the program lets go on without keeping the process. `process.getActiveResourcesInfo()` leaves that out, so
 * that Node's own classes are asked, in a process that is to serve several runs. Returns the names of what goes on.
 */
export function watchUnrefed(): () => string[] {
  const unrefed = new Set<Unrefed>()
  let limit = MOST_UNSORTED
  const forgetEnded = () => {
    for (const each of unrefed) if (hasEnded(each) || each.hasRef?.()) unrefed.delete(each)
  }
  const note = (each: Unrefed, callee: Method) => {
    if (!isCalledByProgram(callee)) return
    unrefed.add(each)
    if (unrefed.size < limit) return
    forgetEnded()
    limit = Math.max(MOST_UNSORTED, unrefed.size * 2)
  }
  for (const prototype of prototypes()) {
    before(prototype, 'unref', note)
    before(prototype, 'ref', (each) => unrefed.delete(each))
    before(prototype, 'close', (each) => unrefed.delete(each))
  }
  return () => {
    forgetEnded()
    return [...unrefed].map((each) => `${each.constructor.name} without ref`)
  }
}

/** Not what Node does for connections of its own, nor what our runtime does. */
function isCalledByProgram(callee: Method): boolean {
  if (isOurs) return false
  const files = sitesHere(FRAMES, callee).map((site) => site.getFileName() ?? '')
  const by = files.find((file) => !file.startsWith('node:') || OF_NODE.test(file))
  return by !== undefined && !OF_NODE.test(by)
}

let isOurs = false

/** Of the runtime itself, which does so for each step: a look at the stack takes 25 µs. */
export function unrefOurs(each: { unref(): unknown }): void {
  isOurs = true
  each.unref()
  isOurs = false
}

/** Of timers, immediates, message ports, and of whatever has a handle: sockets, servers, watchers of files. */
function prototypes(): Prototype[] {
  const timer = setTimeout(() => {}, 0)
  const immediate = setImmediate(() => {})
  clearTimeout(timer)
  clearImmediate(immediate)
  const { Pipe } = process.binding('pipe_wrap')
  const handle = new Pipe(0)
  handle.close()
  return [...[timer, immediate, handle].map(withUnref), MessagePort.prototype as unknown as Prototype]
}

/** The prototype that has the method itself. */
function withUnref(value: object): Prototype {
  let found = Object.getPrototypeOf(value) as Prototype
  while (!Object.hasOwn(found, 'unref')) found = Object.getPrototypeOf(found) as Prototype
  return found
}

function before(
  prototype: Prototype,
  name: 'ref' | 'unref' | 'close',
  act: (each: Unrefed, callee: Method) => void,
): void {
  const method = prototype[name]
  if (typeof method !== 'function') return
  const value: Method = function (...args) {
    act(this, value)
    return Reflect.apply(method, this, args)
  }
  Object.defineProperty(prototype, name, { value })
}
