import { readOrNothing } from './process-id.ts'

/**
 * Share of this machine's memory, or of the container's, that programs can still get. Where it cannot be told it is all of
 * it: what other systems call free leaves out what they would give at once.
 */
export function freeMemoryShare(): number {
  return Math.min(ofMachine(), ofContainer())
}

function ofMachine(): number {
  const text = readOrNothing('/proc/meminfo') ?? ''
  return share(numberAfter(text, 'MemAvailable:'), numberAfter(text, 'MemTotal:'))
}

/** The page cache counts as used here, and is given back as soon as somebody needs it. */
function ofContainer(): number {
  const limit = Number(readOrNothing('/sys/fs/cgroup/memory.max'))
  const used = Number(readOrNothing('/sys/fs/cgroup/memory.current') ?? NaN)
  const cache = numberAfter(readOrNothing('/sys/fs/cgroup/memory.stat') ?? '', 'inactive_file')
  return share(limit - used + (cache || 0), limit)
}

function share(free: number, all: number): number {
  return all > 0 && Number.isFinite(free) ? free / all : 1
}

function numberAfter(text: string, name: string): number {
  const found = new RegExp(`^${name}\\s+(\\d+)`, 'm').exec(text)
  return found ? Number(found[1]) : NaN
}
