import { closeSync, constants, openSync, readdirSync } from 'node:fs'
import type { RejoinReport } from '@windlass/shared/wire/program.ts'
import { encodeFrame, recent, sendTo, writeAll } from './frames.ts'
import { hearFrom, readMessage } from './messages.ts'
import type { Session } from './session.ts'
import { mayHaveStartedOthers } from './started-others.ts'

const LOOK_MS = 20

/**
 * The agent is gone. Another one of the same machine may come for this program before its lease is over: it makes two
 * named pipes in the folder that the start named, says from which frame on it needs to hear everything again, and the
 * program goes on where it stood. Until then it stands still: what it did meanwhile could not be told to anybody.
 * Whoever waits too long ends.
 */
export function rejoin(own: Session): void {
  const { folder, waitMs } = own.start.rejoin ?? { folder: undefined, waitMs: 0 }
  // One that is handed over has withheld what it cannot do any more. And what a program has started cannot be told from
  // what is left of others: the next agent ends that.
  if (own.handover || folder === undefined || mayHaveStartedOthers()) return process.reallyExit(1)
  for (;;) {
    const lines = awaitLines(folder, waitMs)
    // Its worker threads go on meanwhile.
    if (mayHaveStartedOthers()) return process.reallyExit(1)
    if (tellAgain(own, lines)) return
    // That one is gone as well.
  }
}

/** Which lines this process was taken back by last: each agent that comes makes others. */
let last = 0

interface Lines {
  frames: string
  messages: string
}

/** Without a turn of the loop: nothing of the program happens meanwhile. */
function awaitLines(folder: string, waitMs: number): Lines {
  const pause = new Int32Array(new SharedArrayBuffer(4))
  for (let waited = 0; ; waited += LOOK_MS) {
    const newest = Math.max(last, ...readyIn(folder))
    const lines = { frames: `${folder}/frames.${newest}`, messages: `${folder}/messages.${newest}` }
    if (newest > last && isRead(lines.frames)) {
      last = newest
      return lines
    }
    if (waited >= waitMs) process.reallyExit(1)
    Atomics.wait(pause, 0, 0, LOOK_MS)
  }
}

function readyIn(folder: string): number[] {
  try {
    return readdirSync(folder).flatMap((name) => (name.startsWith('ready.') ? Number(name.slice(6)) : []))
  } catch {
    // It is made by whoever comes.
    return []
  }
}

/** Whether somebody is at the other end: one that is gone again must not be waited for. */
function isRead(frames: string): boolean {
  try {
    closeSync(openSync(frames, constants.O_WRONLY | constants.O_NONBLOCK))
    return true
  } catch {
    return false
  }
}

function tellAgain({ start, heard }: Session, lines: Lines): boolean {
  try {
    const frames = openSync(lines.frames, 'w')
    const messages = openSync(lines.messages, 'r')
    const { first, next } = recent
    const report: RejoinReport = { first, next, heard, variables: start.variables, handsOver: true }
    writeAll(frames, encodeFrame('rejoin', JSON.stringify(report)))
    const answer = readMessage(messages)
    // It was killed before it could go on: the next one may come.
    if (!answer) return false
    if (answer.t !== 'resend') return process.reallyExit(1)
    writeAll(frames, Buffer.concat(recent.from(answer.from)))
    sendTo(frames)
    hearFrom(messages)
    return true
  } catch {
    return false
  }
}
