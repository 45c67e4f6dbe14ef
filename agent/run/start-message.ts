import type { StartMessage } from '@windlass/shared/wire/program.ts'
import type { ProgramStart } from './program.ts'

const OUTPUT_BYTES = 1024 * 1024

/** What a process is told of the run that it is to execute. */
export function startMessage(
  start: ProgramStart,
  places: Pick<StartMessage, 'bundleFile' | 'workspace' | 'rejoin'>,
): StartMessage {
  const { runId, attempt, epoch, org, workflow, environment, inputText, variables, token } = start
  const { journal, entries, replay, outputBytes = OUTPUT_BYTES } = start
  const facts = { runId, attempt, epoch, org, workflow, environment, inputText, variables, token }
  const stays = start.process === 'reuse'
  return { t: 'start', ...facts, journal, entries, replay, ...places, stays, outputBytes }
}
