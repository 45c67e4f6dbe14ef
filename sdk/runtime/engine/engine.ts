import type { Completion, JournalRecord } from '@windlass/shared/wire/journal.ts'
import { whenAnswered } from './answers.ts'
import { identityOf, settle, type Call, type Scope } from './call.ts'
import { createFormer } from './former.ts'
import { createHolds } from './holds.ts'
import { argumentsOf, cleanName, createCounter, NO_ARGUMENTS, pathOf, type Arguments } from './identity.ts'
import { checkRoom } from './limits.ts'
import { createOutbox } from './outbox.ts'
import { isAnyPending, outcomeOf, waitedFor, type Pending } from './pending.ts'
import type { Engine, EngineOptions, Port } from './port.ts'
import { createReplay } from './replay.ts'
import { createScopes } from './scopes.ts'
import { executeStep } from './step.ts'

// Shorter ones are not worth a word to anybody.
const SHORT_MS = 1_000

// Programs may put a fake clock in place of Date.
const now = Date.now

export function createEngine({ attempt, journal, entries, replay: isReplay }: EngineOptions, port: Port): Engine {
  const hold = createHolds((on) => port.holdOn(on))
  const outbox = createOutbox(port, (on) => hold('keeping', on))
  const scopes = createScopes()
  const occurrenceOf = createCounter()
  const former = createFormer(journal.filter((record) => record.attempt < attempt))
  const own = journal.filter((record) => record.attempt === attempt)
  const replay = createReplay(isReplay ? own : [], {
    bind,
    give,
    drifted: (n, args) => outbox.send({ op: 'drift', n, args }),
    block: (expected, received, at) => {
      over = 'blocked'
      outbox.close()
      hold('blocked', true)
      port.blocked({ expected, received, at })
    },
  })

  /** Called by the program, and not given a result yet. */
  const pending = new Map<number, Pending>()
  /** Results that the program has not been given yet; `ready` are those of them that it can be given, in their order. */
  const results = new Map<number, Completion>()
  const given = new Set<number>()
  const ready: number[] = []
  let last = journal.reduce((most, { n }) => Math.max(most, n), entries)
  /** How many calls this attempt has made. */
  let called = 0
  let order = own.reduce((most, { delivered }) => Math.max(most, delivered ?? 0), 0)
  let timers = 0
  let isPumping = false
  let isParked = false
  let heard = 0
  let stopped: Error | undefined
  /** From now on nothing is said or given: the process may serve another run. */
  let over: 'blocked' | 'ended' | undefined

  if (isReplay) for (const completion of replay.waiting()) results.set(completion.n, completion)
  else replay.finish()

  function callOf(kind: Call['kind'], name: string, { hash, args }: Arguments, work: Call['work']): Call {
    const within = scopes.current()
    const key = { parent: within?.path ?? '', kind, name: cleanName(name), hash }
    const facts = { ...key, occurrence: occurrenceOf(key), n: 0, position: 0, args, site: '', within, work }
    return { ...facts, ...Promise.withResolvers<unknown>() }
  }

  function make(call: Call): Promise<unknown> {
    if (over) return call.promise
    if (stopped) refuse(call, stopped)
    else place(call)
    return call.promise
  }

  function place(call: Call): void {
    if (!replay.isOver() && replay.take(call)) return pumpSoon()
    call.site = port.site()
    // Parked without having become live: something that keeps no process has called.
    if (isParked) goLive()
    if (replay.isOver()) begin(call)
    else replay.hold(call)
  }

  /** A call that no process of this attempt has made before. */
  function begin(call: Call): void {
    openScopes(call.within)
    const record = former.take(call)
    if (record) return adopt(record, call)
    try {
      checkRoom(last + 1, (text) => port.warn(text))
    } catch (error) {
      return call.reject(error as Error)
    }
    last += 1
    called += 1
    Object.assign(call, { n: last, position: called })
    open(call)
  }

  function adopt(record: JournalRecord, call: Call): void {
    const { n, state, result } = record
    called += 1
    outbox.send({ op: 'adopt', n, position: called })
    bind({ ...record, position: called }, call)
    if (state === 'done') results.set(n, { n, state, result: result ?? 'null' })
    if (results.has(n)) makeReady(n)
  }

  function open(call: Call): void {
    pending.set(call.n, { call })
    if ('act' in call.work) return void execute(call, false)
    const { ask } = call.work.wait
    const ms = ask.for !== 'sleep' ? Infinity : 'ms' in ask ? ask.ms : ask.until - now()
    if (ms < SHORT_MS) doze(call, Math.max(ms, 0))
    else outbox.sendSoon({ op: 'open', entry: identityOf(call), ask })
  }

  /** A step in whose function something is called gets its entry before that. */
  function openScopes(scope: Scope | undefined): void {
    if (!scope || scope.isOpen) return
    openScopes(scope.call.within)
    scope.isOpen = true
    outbox.send({ op: 'open', entry: identityOf(scope.call), ask: { for: 'step' } })
  }

  function doze(call: Call, ms: number): void {
    timers += 1
    const stopTimer = port.later(ms, true, () => {
      timers -= 1
      delete pending.get(call.n)?.stopTimer
      outbox.gather(identityOf(call))
      complete({ n: call.n, state: 'done', result: 'null' })
    })
    pending.set(call.n, { call, stopTimer })
  }

  function bind(record: JournalRecord, call: Call): void {
    const { n, position, site, state } = record
    Object.assign(call, { n, position, site })
    pending.set(n, { call, record })
    if (call.kind === 'step' && state === 'open') void execute(call, true)
  }

  async function execute(call: Call, isOpen: boolean): Promise<void> {
    if (!('act' in call.work)) return
    const scope = { path: pathOf(call.parent, call.name, call.occurrence), isOpen, call }
    const outcome = await executeStep(scopes, scope, call.work.act)
    if (over) return
    const found = pending.get(call.n)
    if (stopped || !found) return settle(call, outcome)
    found.outcome = outcome
    outbox.sendAndKeep({ op: 'close', entry: identityOf(call), ...outcome }, () => complete({ n: call.n, ...outcome }))
  }

  /** The first result of an entry counts. */
  function complete(completion: Completion): void {
    const { n } = completion
    if (over || given.has(n) || results.has(n)) return
    results.set(n, completion)
    if (replay.isOver() && pending.has(n)) makeReady(n)
  }

  function makeReady(n: number): void {
    ready.push(n)
    pumpSoon()
  }

  function pumpSoon(): void {
    if (isPumping) return
    isPumping = true
    port.soon(() => {
      isPumping = false
      if (!over && !stopped) pump()
    })
  }

  /** One result, and then the program does what it can with it before it is given the next. */
  function pump(): void {
    if (!replay.isOver()) {
      if (replay.step()) pumpSoon()
      return
    }
    const completion = results.get(ready.shift() ?? 0)
    if (!completion) return
    order += 1
    outbox.delivered([order, completion.n, called, port.isQuiet(timers) ? 1 : 0])
    give(completion)
    if (ready.length > 0) pumpSoon()
  }

  function give(completion: Completion): void {
    const { n } = completion
    const found = pending.get(n)
    pending.delete(n)
    results.delete(n)
    given.add(n)
    if (found) settle(found.call, completion)
  }

  function goLive(): void {
    if (replay.isOver()) return
    const held = replay.finish()
    called = own.reduce((most, { position }) => Math.max(most, position), 0)
    port.live()
    for (const n of results.keys()) if (pending.has(n)) makeReady(n)
    for (const call of held) begin(call)
  }

  const hasNews = () => isAnyPending(results.keys(), pending)

  function park(): boolean {
    const kind = waitedFor(pending.values())
    if (!kind) return false
    isParked = true
    hold('parked', true)
    port.together(() => {
      outbox.flush()
      port.park(kind, heard)
    })
    return true
  }

  function unpark(): void {
    isParked = false
    hold('parked', false)
  }

  function refuse(call: Call, reason: Error): void {
    // Nobody may be looking at it just now, and that is no reason to end the run in the midst of its tidying up.
    call.promise.catch(() => {})
    if ('act' in call.work) void execute(call, true)
    else call.reject(reason)
  }

  function close(): void {
    outbox.close()
    for (const { stopTimer } of pending.values()) stopTimer?.()
  }

  return {
    wait: (wait) => make(callOf(wait.kind, wait.name, argumentsOf(wait.args), { wait })),
    step: (name, act) => make(callOf('step', name, NO_ARGUMENTS, { act })),
    wake: (completions) => {
      heard += 1
      if (over || stopped) return
      for (const completion of completions) complete(completion)
      if (!isParked) return
      // Nothing that it waits for: whoever woke it has to know that it still waits.
      if (hasNews()) {
        unpark()
        goLive()
      } else park()
    },
    kept: (count) => outbox.kept(count),
    answered: () => whenAnswered({ pending, results, outbox, port }, () => replay.isOver() && !over && !stopped),
    stop: (reason) => {
      if (over || stopped) return
      stopped = reason
      const wasOver = replay.isOver()
      const held = replay.finish()
      if (!wasOver) port.live()
      close()
      unpark()
      for (const found of pending.values()) {
        const outcome = outcomeOf(found)
        if (found.call.kind !== 'step') refuse(found.call, reason)
        else if (outcome) settle(found.call, outcome)
      }
      pending.clear()
      for (const call of held) refuse(call, reason)
    },
    idle: () => {
      if (over || stopped) return over !== undefined
      const turn = replay.isOver() ? 'park' : replay.idle()
      if (turn === 'live') goLive()
      // Nothing else may keep the process: the calls that it has become live with are told of in a moment.
      if (turn === 'again' || turn === 'live') pumpSoon()
      if (turn !== 'park') return true
      if (hasNews()) goLive()
      return ready.length > 0 || park()
    },
    end: (how) => {
      if (over === 'blocked') return false
      if (!replay.isOver() && !isParked) {
        replay.block(how)
        return false
      }
      if (!replay.isOver()) port.live()
      // What it has called and does not wait for is called all the same.
      outbox.release()
      over = 'ended'
      close()
      unpark()
      return true
    },
  }
}
