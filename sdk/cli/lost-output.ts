import { setImmediate as nextTurn } from 'node:timers/promises'
import { EXIT } from './exit-codes.ts'
import { Failure } from './failure.ts'

/** Why standard output takes nothing any more. */
export interface OutputLoss {
  /** A sentence without its full stop. */
  what: string
  exit: number
  code: 'OUTPUT_CLOSED' | 'OUTPUT_NOT_WRITTEN'
}

interface Ends {
  /** Whether the command is over, so that its own exit code is known. */
  isOver: () => boolean
  /** Says what happened to the answer. */
  tell: (failure: Failure) => void
}

/** What goes on though nobody hears of it ends in its own way, and says how to come back to it. */
const listeners = new Set<(loss: OutputLoss) => void>()

export function onLostOutput(listener: (loss: OutputLoss) => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** Resolves when the listeners have been told of what has been printed so far and was not taken. */
export async function whenHeard(): Promise<void> {
  // The error comes in this turn, and `heedLostOutput` waits for the next.
  await nextTurn()
  await nextTurn()
}

/**
 * What is lost of standard error changes nothing. Where standard output takes nothing any more, a command that is over
 * has its own exit code, and one that goes on ends, as by SIGPIPE. What no disk could take is an error in any case.
 */
export function heedLostOutput(ends: Ends): void {
  process.stderr.on('error', () => undefined)
  process.stdout.once('error', (error: NodeJS.ErrnoException) => {
    process.stdout.on('error', () => undefined)
    // A command that has just printed its answer ends in this turn of the loop.
    setImmediate(() => end(lossOf(error), ends))
  })
}

function end(loss: OutputLoss, { isOver, tell }: Ends): void {
  const isUnwritten = loss.code === 'OUTPUT_NOT_WRITTEN'
  if (isOver()) {
    if (!isUnwritten) return
    tell(failureOf(loss))
    // How a run ended says more.
    process.exitCode ||= loss.exit
    return
  }
  if (listeners.size > 0) {
    for (const listener of listeners) listener(loss)
    return
  }
  if (isUnwritten) tell(failureOf(loss))
  process.exit(loss.exit)
}

function failureOf({ what, exit, code }: OutputLoss): Failure {
  return new Failure(
    `${what}. What was asked for may be done all the same.`,
    'make room, or send the output elsewhere; look what was done before you type the same again',
    exit,
    code,
  )
}

/** A pipe between processes of Node is a pair of sockets, which may be reset as well. */
const CLOSED: readonly unknown[] = ['EPIPE', 'ECONNRESET']

function lossOf({ code, message }: NodeJS.ErrnoException): OutputLoss {
  if (CLOSED.includes(code)) return { what: 'Standard output was closed', exit: EXIT.unread, code: 'OUTPUT_CLOSED' }
  const what = `Standard output could not be written: ${message}`
  return { what, exit: EXIT.unwritten, code: 'OUTPUT_NOT_WRITTEN' }
}
