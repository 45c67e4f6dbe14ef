import { z } from 'zod'

/** What a machine carries and a workflow may ask for: `gpu`, `zone:eu-1`. */
export const Label = z
  .string()
  .regex(/^[A-Za-z0-9][\w.:/-]{0,62}$/, { error: 'must be 1 to 63 letters, digits and . _ : / -' })
