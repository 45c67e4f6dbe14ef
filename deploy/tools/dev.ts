import { watch } from 'node:fs'
import { dirname, join } from 'node:path'
import { createClient } from 'windlass/client'
import { packFolder } from 'windlass/cli/commands/deploy.ts'
import { ApiError } from '@windlass/shared/ops/api-error.ts'
import { runInstance, type Up } from '../start/instance.ts'
import type { LocalAccess } from '../start/local-key.ts'
import type { Part } from '../start/part.ts'
import { readSettings } from '../start/settings.ts'
import { createTeller } from '../start/tell.ts'

/** `npm run dev`: an instance of its own in `.windlass/dev`, seeded; a part is started again when its sources change. */
const root = dirname(dirname(import.meta.dirname))
const settings = readSettings(process.argv.slice(2), {
  WINDLASS_HOME: join(root, '.windlass', 'dev'),
  ...process.env,
  WINDLASS_START_EXAMPLE: 'false',
})
const tell = createTeller(settings.json)
const stopping = new AbortController()
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stopping.abort())

/** An editor writes a file in several steps. */
const SETTLE_MS = 150

await runInstance(settings, tell, { stop: stopping.signal }, async (up) => {
  await seed(up.access)
  restartOnChange(up)
})
process.exit()

/** All examples deployed, and a few runs to look at: completed, failed, running. */
async function seed(access: LocalAccess): Promise<void> {
  const client = createClient(access)
  for (const example of ['hello', 'countdown', 'flaky', 'lockfile-report']) {
    const { slug, files } = await packFolder(join(root, 'sdk', 'examples', example))
    try {
      await client.workflows.update({ workflow: slug, files })
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'NOT_FOUND') throw error
      await client.workflows.create({ files })
    }
  }
  await client.runs.trigger({ workflow: 'hello', input: { name: 'Ada' } })
  await client.runs.trigger({ workflow: 'flaky', input: { succeedsOnAttempt: 2, how: 'throw' } })
  await client.runs.trigger({ workflow: 'countdown', input: { from: 60 } })
  tell.say('seeded: 4 workflows, 3 runs')
}

function restartOnChange({ coordinator, agent }: Up): void {
  const restart = debounced((parts: Set<Part>) => {
    for (const part of parts) {
      const pid = part.pid()
      if (pid !== undefined) process.kill(pid, 'SIGTERM')
    }
  })
  for (const [room, parts] of [
    ['coordinator', [coordinator]],
    ['agent', [agent]],
    ['shared', [coordinator, agent]],
    // What programs import is built by the agent when it starts.
    ['sdk/runtime', [agent]],
  ] as const) {
    const watcher = watch(join(root, room), { recursive: true }, (_, file) => {
      if (file?.endsWith('.ts') && !file.startsWith('test/')) restart(parts)
    })
    stopping.signal.addEventListener('abort', () => watcher.close())
  }
}

function debounced(act: (parts: Set<Part>) => void): (parts: readonly Part[]) => void {
  let gathered = new Set<Part>()
  let timer: NodeJS.Timeout | undefined
  return (parts) => {
    for (const part of parts) gathered.add(part)
    clearTimeout(timer)
    timer = setTimeout(() => {
      act(gathered)
      gathered = new Set()
    }, SETTLE_MS)
  }
}
