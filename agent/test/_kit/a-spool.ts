import { readdir } from 'node:fs/promises'
import path from 'node:path'
import type { Entry, EntryBatch } from '@windlass/shared/wire/agent.ts'
import { announce } from '@windlass/shared/test/_kit/until.ts'
import { createUpload } from '../../link/upload.ts'
import type { Upload } from '../../link/upload.ts'
import { openSpool } from '../../run/spool/spool.ts'
import type { Spool, SpoolOptions } from '../../run/spool/spool.ts'
import { aLog } from './an-agent.ts'
import type { Logged } from './an-agent.ts'

const MIB = 1024 * 1024

export function anEntry(text: string): Entry {
  return ['e', 1, 'log.stdout', JSON.stringify({ text })]
}

/** Of the spool of `aSpool`, in order. */
export async function filesOf(folder: string): Promise<string[]> {
  const names = await readdir(path.join(folder, 'spool'))
  return names.sort().map((name) => path.join(folder, 'spool', name))
}

export function textsOf(entries: readonly Entry[]): string[] {
  return entries.flatMap((entry) => (entry[0] === 'e' ? [JSON.parse(entry[3]).text as string] : []))
}

export function aSpool(
  folder: string,
  more: Partial<Omit<SpoolOptions, 'folder' | 'log'>> = {},
): Promise<Spool & Logged> {
  const logged = aLog()
  const options = {
    folder: path.join(folder, 'spool'),
    runBytes: 64 * MIB,
    totalBytes: 1024 * MIB,
    log: logged.log,
    ...more,
  }
  return openSpool(options).then((spool) => Object.assign(spool, logged))
}

/** The far end of a connection that takes everything, for the sending side alone. */
export interface Receiver {
  upload: Upload
  got: Map<string, Entry[]>
  /** Batches that began too late. */
  gaps: number
  /** Called before each frame is taken. */
  onFrame: (text: string) => void
  /** Characters that its line brings in some seconds. */
  frameChars: number
  connect(): void
  disconnect(): void
  /** For what a placement has said after so many entries, or after the acknowledged ones, as `resume` does. */
  askAgain(run: string, seq?: number): void
  /** While true, what is sent waits: the promise that `sendEntries` gave settles when it is set to false. */
  block(isBlocked: boolean): void
}

export function aReceiver(spool: Spool & Logged, memoryBytes = 8 * MIB): Receiver {
  let isReady = false
  let blocked: (() => void)[] | undefined
  const got = new Map<string, Entry[]>()
  const receiver: Receiver = {
    got,
    gaps: 0,
    frameChars: Infinity,
    onFrame: () => undefined,
    upload: createUpload({
      spool,
      memoryBytes,
      log: spool.log,
      onGap: () => (receiver.gaps += 1),
      link: {
        get isReady() {
          return isReady
        },
        get frameChars() {
          return receiver.frameChars
        },
        drop: () => (isReady = false),
        sendEntries,
      },
    }),
    connect() {
      isReady = true
      for (const held of spool.held()) held.sent = held.acked
      receiver.upload.rewind()
    },
    disconnect() {
      isReady = false
      receiver.upload.stop()
    },
    askAgain(run, seq) {
      const held = spool.find(run, 1)
      if (!isReady || !held) return
      held.sent = seq ?? held.acked
      receiver.upload.rewind()
    },
    block(isBlocked) {
      for (const resume of blocked ?? []) resume()
      blocked = isBlocked ? [] : undefined
    },
  }
  function sendEntries(text: string): Promise<void> | undefined {
    receiver.onFrame(text)
    const { batches } = JSON.parse(text) as { batches: EntryBatch[] }
    for (const batch of batches) keep(batch)
    announce()
    const waiting = blocked
    return waiting && new Promise((resolve) => waiting.push(resolve))
  }
  function keep({ run, epoch, first, entries }: EntryBatch): void {
    const key = `${run}/${epoch}`
    const have = got.get(key) ?? []
    if (first > have.length + 1) receiver.gaps += 1
    got.set(key, [...have, ...entries.slice(have.length + 1 - first)])
  }
  return receiver
}
