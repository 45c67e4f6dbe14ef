import { setTimeout as pause } from 'node:timers/promises'
import { serve } from '../../../tools/serve.ts'

/** A tool that does whatever a test wants to see done. */
export type Wish =
  | { do: 'say'; text: string }
  | { do: 'look' }
  | { do: 'wait'; ms: number }
  | { do: 'spin' }
  | { do: 'spin in steps'; steps: number; ms: number }
  | { do: 'eat'; what: Food }
  | { do: 'throw' }
  | { do: 'exit' }

/** One text is longer than any may be, long before its memory is used. */
type Food = 'objects' | 'buffers' | 'texts' | 'one text'

serve(async (wish: Wish, step) => {
  switch (wish.do) {
    case 'say':
      return wish.text
    case 'look':
      return { pid: process.pid, cwd: process.cwd(), env: Object.keys(process.env) }
    case 'wait':
      await pause(wish.ms)
      return 'waited'
    case 'spin':
      return spin(Infinity)
    case 'spin in steps':
      for (let n = 0; n < wish.steps; n++) {
        spin(wish.ms)
        step()
      }
      return 'spun'
    case 'eat':
      return eat(wish.what)
    case 'throw':
      throw new Error('thrown for a test')
    case 'exit':
      process.exit(3)
  }
})

/** Uses so much of the processor's time. */
function spin(ms: number): void {
  const from = usedMs()
  while (usedMs() - from < ms) continue
}

function usedMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** 2 GiB at most, so that a limit that fails does not take the machine with it. */
function eat(what: Food): number {
  const held: unknown[] = []
  let text = ''
  for (let n = 0; n < 128; n++) {
    if (what === 'one text') text += 'y'.repeat(16 << 20)
    else if (what === 'buffers') held.push(Buffer.alloc(16 << 20, 1))
    else if (what === 'texts') held.push(JSON.stringify('y'.repeat(16 << 20) + n))
    else held.push(Array.from({ length: 250_000 }, (_, i) => ({ n, i })))
  }
  return held.length + text.length
}
