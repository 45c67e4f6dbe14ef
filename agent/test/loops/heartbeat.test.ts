import { test } from 'node:test'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { createBell } from '../../bell.ts'
import { createBeats } from '../../lease/beats.ts'
import { heartbeatLoop } from '../../loops/heartbeat.ts'

test('a heartbeat that is asked for comes at once, also after those that came in their time', async () => {
  const settings = { current: { heartbeatMs: 1, fenceMs: 50_000, cancelGraceMs: 0, pollMs: 0 } }
  const beats = createBeats(createBell())
  let sent = 0
  const link = { isReady: true, send: () => (sent += 1) > 0 }
  const self = { heartbeat: (n: number) => ({ t: 'heartbeat', n, holds: [], fenceMs: 50_000 }) as const }
  const nobody = { agentRuns: { all: () => [], size: 0 }, processes: { fenceAt() {} }, sleeps: { look() {} } }
  const end = new AbortController()
  const ended = heartbeatLoop({ ...nobody, settings, beats, link, self, log: () => {} } as never, end.signal)
  await untilPolled('some in their time', () => sent >= 3)
  settings.current.heartbeatMs = 3_600_000
  const before = sent
  // The pause under way may still be a short one.
  await untilPolled('the first that is asked for', () => {
    beats.bell.ring()
    return sent >= before + 3
  })
  end.abort()
  await ended
})
