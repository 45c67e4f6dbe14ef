import { setTimeout as wait } from 'node:timers/promises'
import type { PendingInput } from '@windlass/shared/model/input.ts'
import { ApiError, type Client } from 'windlass/client'
import type { Question } from '../programs/durable/interpreter/ast.ts'
import type { Random } from '@windlass/shared/test/_kit/seed.ts'

const LOOK_MS = 15
const SLOWEST_MS = 30

/** Answers every question that says how, a random moment after it was asked, until it is stopped. */
export function responder(client: Client, random: Random): { stop(): Promise<number> } {
  const stopping = new AbortController()
  const taken = new Set<string>()
  const answers: Promise<void>[] = []
  const failures: unknown[] = []

  const answer = async ({ id, prompt }: PendingInput) => {
    const question = questionOf(prompt)
    if (!('answer' in question)) return
    await wait(random.between(0, SLOWEST_MS))
    // Away for a moment: it is still open, and asked for again.
    if (!(await respond(client, id, question.answer))) taken.delete(id)
  }

  const loop = (async () => {
    while (!stopping.signal.aborted) {
      const open = (await patiently(() => openQuestions(client))) ?? []
      for (const input of open.filter(({ id }) => !taken.has(id))) {
        taken.add(input.id)
        answers.push(answer(input).catch((error: unknown) => void failures.push(error)))
      }
      await wait(LOOK_MS)
    }
  })()
  return {
    async stop() {
      stopping.abort()
      await loop
      await Promise.all(answers)
      if (failures.length > 0) throw new AggregateError(failures, 'answers were refused')
      return taken.size
    },
  }
}

/** Whether it is answered: by us, or by its timeout, or not needed any more. */
export async function respond(client: Client, input: string, answer: unknown): Promise<boolean> {
  const done = await patiently(async () => {
    try {
      await client.inputs.respond({ input, answer })
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 'INPUT_CLOSED')) throw error
    }
    return true
  })
  return done ?? false
}

export function questionOf(prompt: string): Question {
  return prompt.startsWith('{') ? (JSON.parse(prompt) as Question) : { key: prompt }
}

async function openQuestions(client: Client): Promise<PendingInput[]> {
  const found: PendingInput[] = []
  for (let cursor: string | undefined; ;) {
    const page = await client.inputs.list({ limit: 100, ...(cursor && { cursor }) })
    found.push(...page.inputs)
    if (page.nextCursor === null) return found
    cursor = page.nextCursor
  }
}

/** Nothing while the service is away. A refusal is a failure of the test. */
export async function patiently<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call()
  } catch (error) {
    if (error instanceof ApiError && (error.status === 0 || error.status === 503)) return undefined
    throw error
  }
}
