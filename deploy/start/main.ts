import { runInstance } from './instance.ts'
import { readSettings } from './settings.ts'
import { createTeller } from './tell.ts'

/** `npm start`: database, coordinator and one local agent, until a signal. */
const settings = readSettings(process.argv.slice(2), process.env)
const tell = createTeller(settings.json)
const stopping = new AbortController()

const FORCED = 130

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    if (stopping.signal.aborted) process.exit(FORCED)
    tell.say(`${signal}: stopping. Running programs have ${settings.agentStopMs / 1000} s; once more ends at once.`)
    stopping.abort()
  })
}

try {
  await runInstance(settings, tell, stopping.signal)
  tell.say('stopped')
} catch (error) {
  tell.fail(error instanceof Error ? error.message : String(error))
  process.exitCode = 1
}
process.exit()
