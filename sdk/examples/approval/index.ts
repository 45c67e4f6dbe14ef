import { log, phase, requestInput, RunFailedError, sleep, step, workflows } from 'windlass'

export interface Input {
  payee: string
  /**
   * In cents.
   * @minimum 1
   */
  amount: number
  /** How long nobody has to answer before nothing is paid: "2d" when left out. */
  patience?: string
  /** How long the money is held back after a yes, so that it can be thought over: "10s" when left out. */
  holdBack?: string
}

export interface Output {
  paid: boolean
  /** Number of the payment. */
  receipt?: string
  note?: string
}

export async function run({ payee, amount, patience = '2d', holdBack = '10s' }: Input): Promise<Output> {
  phase('ask')
  // The run takes no slot while it waits, and a machine that goes down meanwhile changes nothing.
  const answer = await requestInput({
    prompt: `May ${payee} be paid ${(amount / 100).toFixed(2)} €?`,
    schema: {
      type: 'object',
      properties: { approve: { type: 'boolean' }, note: { type: 'string' } },
      required: ['approve'],
      additionalProperties: false,
    },
    timeout: patience,
    onTimeout: { answer: { approve: false, note: 'Nobody has answered.' } },
  })
  if (!answer.approve) return { paid: false, note: answer.note }

  phase('hold back')
  await sleep(holdBack)

  phase('pay')
  // Executed once: its result is kept, and with it the number that was drawn.
  const receipt = await step('pay', () => pay(payee, amount))
  log('paid', { receipt })
  return { paid: true, receipt, note: await greet(payee) }
}

/** Where a payment service would be called. */
function pay(payee: string, amount: number): string {
  return `${payee}-${amount}-${Math.random().toString(36).slice(2, 8)}`
}

/** A payment stands, whatever becomes of the greeting. */
async function greet(payee: string): Promise<string | undefined> {
  try {
    const { greeting } = await workflows.call<{ greeting: string }>('hello', { name: payee })
    return greeting
  } catch (error) {
    if (!(error instanceof RunFailedError)) throw error
    log.warn('not greeted', { run: error.runId })
    return undefined
  }
}
