// A coordinator that is killed when a delivery is committed and its sender has not been answered.
import { onMoment } from '@windlass/shared/probe.ts'
import { readConfig } from '../../../config.ts'
import { startCoordinator } from '../../../start.ts'

const { port } = await startCoordinator(readConfig())
onMoment(({ name }) => {
  if (name === 'delivery.committed') process.kill(process.pid, 'SIGKILL')
})
process.send!({ port })
