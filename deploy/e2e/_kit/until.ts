/** What happens in a whole system happens in other processes, which announce nothing to this one. */
export { DEADLINE_MS, untilPolled as until } from '@windlass/shared/test/_kit/until.ts'
