// An agent without a coordinator, with one program in bubblewrap. Prints what that prints, and never ends by itself.
import path from 'node:path'
import { PLAIN } from '../../isolation/plan.ts'
import { programEnvironment } from '../../os/environment.ts'
import { createProcesses } from '../../run/hosts/processes.ts'
import { openRecords } from '../../takeover/records.ts'
import { aStart, texts } from '../run/programs.ts'

const [home = '', bundle = ''] = process.argv.slice(2)
const processes = await createProcesses({
  home,
  environment: programEnvironment(process.env),
  spares: 0,
  isolation: { ...PLAIN, level: 'bubblewrap', cgroup: 'off' },
  records: openRecords(path.join(home, 'lives')),
})
process.stdout.write(`${processes.stats().reaperPid}\n`)
const start = { ...aStart(bundle), inputText: '{"stays":true}', timeoutMs: 600_000 }
processes.run(start, (batch) => texts(batch).forEach((text) => process.stdout.write(`${text}\n`)))
