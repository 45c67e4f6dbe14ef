import { z } from 'zod'

/** Query parameters of every list. */
export const PageQuery = {
  limit: z.int().min(1).max(100).default(50).meta({ description: 'Items on a page.' }),
  cursor: z.string().max(200).optional().meta({ description: '`nextCursor` of the page before.' }),
}

export const NextCursor = z.string().nullable().meta({ description: 'Null on the last page.' })
