import { context, log, phase } from 'windlass'

export async function run(input, given) {
  console.log('one')
  phase('two', { input })
  log('three')
  process.stdout.write('fo')
  process.stdout.write('ur\n')
  log.error('five', { same: context.runId === given.runId })
  console.error('six')
  phase('seven')
  process.stdout.write('eight, without a line break')
  return { attempt: context.attempt, workflow: context.workflow, environment: context.environment }
}
