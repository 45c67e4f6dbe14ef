import { programEnvironment } from '../../../os/environment.ts'
import { createProcesses } from '../../../run/hosts/processes.ts'
import type { ProgramEvent } from '../../../run/program/output.ts'
import { aStart, texts } from '../programs.ts'

// Executes a busy loop, and a program with a child in a session of its own. Prints the numbers of these three processes and
// never ends by itself.
const [home = '', busy = '', stray = ''] = process.argv.slice(2)
const processes = await createProcesses({ home, environment: programEnvironment(process.env), spares: 0 })
const print = (batch: ProgramEvent[]) => {
  for (const text of texts(batch)) {
    const pid = /^(?:pid )?(\d+)$/.exec(text)?.[1]
    if (pid) process.stdout.write(`${pid}\n`)
  }
}
processes.run(aStart(busy), print)
processes.run({ ...aStart(stray), inputText: '{"inSession":true,"stays":true}' }, print)
