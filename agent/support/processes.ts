import { readdirSync } from 'node:fs'
import { readOrNothing } from '../os/process-id.ts'

/** A process of the agent. Its command line is left out: programs put into theirs whatever they like. */
export interface ProcessLine {
  pid: number
  parent: number
  name: string
  state: string
  threads: number
  residentKib: number
}

/** The daemon and all that descends from it. Nothing where there is no /proc. */
export function processesOf(daemon: number): ProcessLine[] {
  const all = pids().flatMap((pid) => lineOf(pid) ?? [])
  const found = all.filter(({ pid }) => pid === daemon)
  for (const { pid } of found) found.push(...all.filter(({ parent }) => parent === pid))
  return found
}

function pids(): number[] {
  try {
    return readdirSync('/proc').map(Number).filter(Number.isInteger)
  } catch {
    // Another system than Linux.
    return []
  }
}

function lineOf(pid: number): ProcessLine | undefined {
  const text = readOrNothing(`/proc/${pid}/status`)
  if (text === undefined) return undefined
  const field = (name: string) => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(text)?.[1] ?? ''
  return {
    pid,
    parent: Number(field('PPid')),
    name: field('Name'),
    state: field('State'),
    threads: Number(field('Threads')),
    residentKib: Number.parseInt(field('VmRSS') || '0', 10),
  }
}
