import { secretsOfRun } from '../environments/secrets.ts'
import { claimRuns } from '../dispatch/claim.ts'
import { poolSettingsOf } from '../runners/pool-settings.ts'
import { registerRunner } from '../runners/register.ts'
import { renewKey } from '../runners/renew-key.ts'
import { journalFor } from '../engine/commit/read-journal.ts'
import { serveAgent } from '../agent-link/serve-agent.ts'
import { agentSettings } from '../runners/settings.ts'
import { selfOf } from '../runs/read.ts'
import { bundleOf } from '../workflows/read.ts'
import { type HandlersFor, PiecesAnswer, SocketAnswer } from './call.ts'
import type { Sockets } from '../agent-link/sockets.ts'
import type { Needs } from '@windlass/shared/needs.ts'

type RunnerSurfaceNeeds = Needs<
  | typeof agentSettings
  | typeof bundleOf
  | typeof claimRuns
  | typeof journalFor
  | typeof poolSettingsOf
  | typeof registerRunner
  | typeof renewKey
  | typeof secretsOfRun
  | typeof selfOf
  | typeof serveAgent
> & { sockets: Sockets }

export const runnerSurface = (deps: RunnerSurfaceNeeds): HandlersFor<'runnerSurface'> => ({
  register: async (call) => {
    const { poolId, ...joined } = await registerRunner(deps, call.input, call)
    return { ...joined, settings: agentSettings(deps, await poolSettingsOf(deps, poolId)) }
  },

  renew: ({ input, runner, requestId }) => renewKey(deps, runner, input.publicKey, requestId),

  claims: ({ input, runner, gone }) => claimRuns(deps, runner, input, gone),

  bundle: async ({ input, runner }) => {
    const { pieces, bytes } = await bundleOf(deps, runner.orgId, input.digest)
    return new PiecesAnswer(pieces, 'application/gzip', { bytes })
  },

  journal: async (call) => {
    const assertConnected = () => call.assertConnected()
    const { pieces, cut } = await journalFor(deps, call.runner, { ...call.input, assertConnected })
    return new PiecesAnswer(pieces, 'application/json', { cut })
  },

  socket: ({ runner, base }) => {
    deps.sockets.connects.take(runner)
    return new SocketAnswer((socket) => serveAgent(deps, runner, deps.sockets.open(runner, socket), base))
  },

  self: async ({ input, program }) => ({ run: await selfOf(deps, program, input.run) }),

  secrets: async ({ input, program }) => ({ secrets: await secretsOfRun(deps, program, input.run) }),
})
