import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { untilPolled } from './until.ts'

/** Returns whether a process has ended, zombies included. */
export function isGone(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return ['Z', 'X'].includes(stat.slice(stat.lastIndexOf(')') + 2)[0] ?? '')
  } catch {
    // It vanished, which is what we wanted to know.
    return true
  }
}

/** The kernel tells nobody but a parent that a process has ended. */
export function untilGone(what: string, pid: number): Promise<boolean> {
  return untilPolled(`${what} is gone`, () => isGone(pid))
}

export interface Zombie {
  pid: number
  /** Its start, in clock ticks since boot. */
  started: string
  /** Its parent goes, and it with it. */
  end(): Promise<void>
}

/** A process that has ended and that nobody reaps. */
export async function aZombie(): Promise<Zombie> {
  // The shell becomes a program that reaps nobody, and only then its child ends.
  const script = 'exec 3<&0; cat <&3 & echo $!; exec sleep 600'
  const parent = spawn('/bin/sh', ['-c', script], { stdio: ['pipe', 'pipe', 'ignore'] })
  const exited = once(parent, 'exit')
  const [line] = (await once(parent.stdout, 'data')) as [Buffer]
  const pid = Number(String(line))
  await untilPolled('the shell is another program', () => nameOf(parent.pid!) === 'sleep')
  parent.stdin.end()
  await untilGone('the child', pid)
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const started = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]!
  const end = async () => {
    parent.kill('SIGKILL')
    await exited
  }
  return { pid, started, end }
}

const nameOf = (pid: number) => readFileSync(`/proc/${pid}/comm`, 'latin1').trim()
