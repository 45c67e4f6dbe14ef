/**
 * One process supervises a server. Without this a second start on the same home would adopt the running server as an orphan,
 * and stop it under the first one's feet when it ends.
 */
import { randomUUID } from 'node:crypto'
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { isAlive, isZombie, startTicks } from './embedded-process.ts'
import { ignoring } from './embedded-layout.ts'
import type { Layout } from './embedded-layout.ts'

/** Settles with the act that gives the home free again; refuses when a live process has it. */
export async function superviseAlone(layout: Layout): Promise<() => Promise<void>> {
  const mine = JSON.stringify({ pid: process.pid, startTicks: await startTicks(process.pid), start: randomUUID() })
  // Twice: the second time after a dead holder's file was taken away.
  for (let round = 0; round < 2; round++) {
    if (await claim(layout.supervisorFile, mine)) return () => release(layout.supervisorFile, mine)
    const theirs = (await ignoring(['ENOENT'], readFile(layout.supervisorFile, 'utf8'))) ?? ''
    const holder = await runningHolder(theirs)
    if (holder) throw inUse(layout, holder)
    await takeAway(layout.supervisorFile, theirs)
  }
  throw inUse(layout, 'that just started')
}

function inUse(layout: Layout, holder: number | string): Error {
  return new Error(
    `The database in ${layout.root} is in use by the process ${holder}: stop that Windlass first, or set WINDLASS_HOME to another folder.`,
  )
}

/** A link appears with its content in place, and not at all when the name is taken. */
async function claim(file: string, content: string): Promise<boolean> {
  const draft = `${file}.${randomUUID()}`
  await writeFile(draft, content, { mode: 0o600 })
  try {
    await link(draft, file)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  } finally {
    await rm(draft, { force: true })
  }
}

async function release(file: string, mine: string) {
  if ((await ignoring(['ENOENT'], readFile(file, 'utf8'))) === mine) await rm(file, { force: true })
}

/** Two starts may find the same dead holder: only the file that was judged goes, a newer one is put back. */
async function takeAway(file: string, judged: string) {
  const aside = `${file}.${randomUUID()}`
  await ignoring(['ENOENT'], rename(file, aside))
  const taken = await ignoring(['ENOENT'], readFile(aside, 'utf8'))
  if (taken !== undefined && taken !== judged) await ignoring(['EEXIST'], link(aside, file))
  await rm(aside, { force: true })
}

async function runningHolder(text: string): Promise<number | undefined> {
  const match = /"pid":(\d+),"startTicks":"(\d*)"/.exec(text)
  const pid = Number(match?.[1])
  if (!match || !isAlive(pid) || (await isZombie(pid))) return undefined
  return (await startTicks(pid)) === match[2] ? pid : undefined
}
