/**
 * What is cleaned each hour. All in one queue: a cleaning goes on until nothing is left, and the other one of the two
 * workers is there for what people wait for.
 */
export const CRONTAB = [
  '7 * * * * variableSets:clean',
  '17 * * * * registrationTokens:clean',
  '27 * * * * tokenKeys:clean',
  '37 * * * * idempotencyKeys:clean',
  '47 * * * * orgEvents:clean',
  '52 * * * * deliveries:clean',
  '57 * * * * rateLimits:clean',
  '2 * * * * workflows:purge',
  '2 * * * * waits:clean',
  '12 * * * * bulkJobs:clean',
  '22 * * * * jobs:clean',
  '32 * * * * retention:begin',
]
  .map((line) => `${line} ?queue=cleaning`)
  .join('\n')
