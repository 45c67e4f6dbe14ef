import { failureOf } from './failure.ts'
import { runInstance } from './instance.ts'
import { readSettings } from './settings.ts'
import { createUrgencies } from './signals.ts'
import { createTeller } from './tell.ts'

/** `npm start`: database, coordinator and one local agent, until a signal. */
const settings = readSettings(process.argv.slice(2), process.env)
const tell = createTeller(settings.json)
const [stopping, hurrying] = [new AbortController(), new AbortController()]
const urgencyOf = createUrgencies()

const FORCED = 130

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    const urgency = urgencyOf(signal, performance.now())
    if (urgency === 'leave') process.exit(FORCED)
    if (urgency === 'stop') {
      tell.say(`${signal}: stopping. Running programs have ${settings.agentStopMs / 1000} s; once more ends at once.`)
      stopping.abort()
    }
    if (urgency === 'hurry') {
      tell.say(`${signal}: ending programs, agent, coordinator and database at once.`)
      process.exitCode = FORCED
      hurrying.abort()
    }
  })
}

try {
  await runInstance(settings, tell, { stop: stopping.signal, hurry: hurrying.signal })
  tell.say('stopped')
} catch (error) {
  tell.fail(failureOf(error, settings.home))
  process.exitCode ??= 1
}
process.exit()
