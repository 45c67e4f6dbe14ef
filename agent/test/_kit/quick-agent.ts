import { onMoment } from '@windlass/shared/probe.ts'
import { environment } from '../../config.ts'
import { runAgent } from '../../run-agent.ts'
import { QUICK } from './quick.ts'

// `main.ts` with other paces. `DIES_AT`, as in `program.begins run_x`: a moment with that among its facts ends it.
const [dying = '', fact = ''] = (process.env.DIES_AT ?? '').split(' ')
if (dying !== '')
  onMoment(({ name, facts }) => {
    if (name === dying && Object.values(facts).includes(fact)) process.kill(process.pid, 'SIGKILL')
  })

process.exit(await runAgent({}, environment(), QUICK))
