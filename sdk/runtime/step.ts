import { waitsFor } from './bridge.ts'

const NAME_CHARACTERS = 200

/**
 * Keeps what a function comes to, also across the loss of the process: when the program is led through its past again,
 * a result that is kept is not asked for a second time. Meant for what should not happen twice, and for what may come
 * out differently each time: payments, random numbers, the time of day. `step` resolves when the result is kept.
 *
 * The function is executed at least once: again when the process dies between the effect and the keeping of its result.
 * Hand other systems an idempotency key, such as `context.runId` and the step's name. A step that waits inside is
 * executed again by each replay, up to its wait: what must not be repeated does not wait inside. Await what the
 * function calls: once its result is kept, steps and calls that it has left under way are not done again. The log warns
 * of such.
 *
 * The result, at most 1 MiB, comes back as a copy: plain objects, arrays, dates, maps, sets, bigints, bytes and errors
 * keep their type; functions and instances of classes are refused. An error that is thrown keeps name, message, `code`
 * and stack; it is kept like a result, so handle failures that should be tried again inside of the function. Where the
 * program catches one and calls anything after that, the attempt after a crash is given it too, and so takes the same
 * way. After an error that is tried again it is given where a step of that name was called again. Any other failure is
 * tried again by the next attempt. Return what is to stay decided in place of throwing it: a result is always kept.
 *
 * @param name says what it does, at most 200 characters; need not be unique. After a crash equal names are told apart
 * by the order of their calls only: branches that go on side by side and do different work take different names
 * @example
 * import { step, type RunContext } from 'windlass'
 *
 * export async function run(input: { amount: number }, context: RunContext) {
 *   const paidAt = await step('pay', async () => {
 *     const headers = { 'Idempotency-Key': `${context.runId}/pay` }
 *     await fetch('https://example.com/pay', { method: 'POST', headers, body: JSON.stringify(input) })
 *     return new Date()
 *   })
 *   return { paidAt: paidAt.toISOString() }
 * }
 */
export function step<T>(name: string, fn: () => T): Promise<Awaited<T>> {
  if (typeof name !== 'string' || name === '' || name.length > NAME_CHARACTERS) {
    throw new TypeError(`step(name, fn): name is a text of 1 to ${NAME_CHARACTERS} characters.`)
  }
  if (typeof fn !== 'function') throw new TypeError(`step('${name}', fn): fn is a function: step('${name}', () => …).`)
  const waits = waitsFor('step()')
  return (waits ? waits.step(name, fn) : byHand(fn)) as Promise<Awaited<T>>
}

async function byHand(fn: () => unknown): Promise<unknown> {
  return await fn()
}
