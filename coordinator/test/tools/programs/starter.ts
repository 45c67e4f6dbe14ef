import { spawn } from 'node:child_process'
import { serve } from '../../../tools/serve.ts'

/** A tool that starts a process of its own, as esbuild does, and may then never come to its end. */
serve(({ isEndless }: { isEndless: boolean }): number => {
  if (isEndless) for (;;) continue
  return spawn('/bin/sleep', ['1000'], { stdio: 'ignore' }).pid!
})
