import { z } from 'zod'

/** Where a part of a text begins, as a caller says it. */
export const Offset = z
  .int()
  .min(0)
  .meta({ description: 'Characters before the part; `nextOffset` of the one before.' })

/** Which part of a text an answer holds. Characters are counted as JavaScript does, in UTF-16. */
export const Part = z
  .object({
    offset: z.int().meta({ description: 'Characters before it.' }),
    chars: z.int().meta({ description: 'Characters of the whole.' }),
    nextOffset: z.int().nullable().meta({ description: 'Where the rest begins; null when nothing is left.' }),
  })
  .meta({ id: 'Part' })
export type Part = z.output<typeof Part>
