import { context } from 'windlass'

export function run(_, { trigger }) {
  return [trigger, context.trigger]
}
