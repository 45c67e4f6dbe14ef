import { z } from 'zod'

/** A hundred years. */
export const MOST_DAYS = 36_500

const Days = z.int().min(1).max(MOST_DAYS).nullable()

/** How long an org keeps what has ended. Null: for as long as the service does. */
export const RetentionDays = {
  runsDays: Days.meta({
    description:
      'So many days after the end of a run its input, output, events and journal are deleted, as by `runs.delete`. ' +
      'Null: as long as the service keeps them.',
  }),
  deliveriesDays: Days.meta({
    description: 'Days after which a delivery is deleted with its payload. Null: as long as the service keeps them.',
  }),
}

export const Retention = z
  .object({
    ...RetentionDays,
    maxRunsDays: Days.meta({ description: 'How long the service keeps runs of any org. Null: for ever.' }),
    maxDeliveriesDays: Days.meta({ description: 'How long the service keeps deliveries of any org. Null: for ever.' }),
    actsAt: z
      .int()
      .nullable()
      .meta({
        description:
          'Before this moment, an hour after its last change, nothing is deleted by what the org has said. ' +
          'Null: it has said nothing.',
      }),
  })
  .meta({ id: 'Retention' })
export type Retention = z.output<typeof Retention>
