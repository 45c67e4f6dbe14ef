/** For all rooms. What nobody announces (the clock of the database, its locks, another server) is for `untilPolled`. */
export { until, untilPolled } from '@windlass/shared/test/_kit/until.ts'
