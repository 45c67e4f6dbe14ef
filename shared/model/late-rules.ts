import { z } from 'zod'

export const DEFAULT_CATCH_UP_WINDOW_MS = 3_600_000

export const CatchUp = z
  .enum(['skip', 'last', 'all'])
  .meta({ description: 'What fires of ticks that were missed: none, the last, or all, one per second.' })
export type CatchUp = z.output<typeof CatchUp>

export const Overlap = z.enum(['allow', 'skip', 'cancel']).meta({
  description:
    'What a tick does while a run of it is unfinished: start another, start none, or cancel it and start another.',
})
export type Overlap = z.output<typeof Overlap>
