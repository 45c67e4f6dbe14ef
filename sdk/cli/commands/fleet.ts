import type { Command } from 'commander'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Client } from '../../client/index.ts'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import { groupCommand, rowArgs, rowCommand } from '../from-table.ts'
import { does } from '../session.ts'
import { printFields, printTable } from '../table.ts'
import { cellTime, note, print, timeText } from '../terminal.ts'
import { tellNextPage } from '../next-page.ts'

/** `pools` and `runners`: where runs execute. */
export function addFleet(program: Command): void {
  const pools = groupCommand(program, 'pools')
  addPoolList(pools)
  addPoolCreate(pools)
  addToken(pools)
  const runners = groupCommand(program, 'runners')
  addRunnerList(runners)
  addRunnerGet(runners)
}

function addPoolList(group: Command): void {
  does(rowCommand(group, 'list', ops.pools.list), async (session, positional, options) => {
    const answer = await session.client.pools.list(await rowArgs(ops.pools.list, positional, options))
    await session.answer(answer, async () => {
      const rows = answer.runnerPools.map((p) => [
        p.name,
        p.id,
        String(p.runners),
        String(p.queuedRuns),
        cellTime(p.createdAt),
      ])
      await printTable(['POOL', 'ID', 'RUNNERS', 'QUEUED RUNS', 'CREATED?'], rows)
      tellNextPage(answer.nextCursor)
    })
  })
}

function addPoolCreate(group: Command): void {
  // The name is what it is about, so it is an argument rather than the flag that the row alone would give.
  const command = group
    .command('create')
    .description(ops.pools.create.summary)
    .argument('<name>', 'lower-case letters, digits and dashes')
    .addHelpText('after', '\n  windlass pools create builders')
  does(command, async (session, [name = '']) => {
    const answer = await session.client.pools.create({ name })
    await session.answer(answer, () => {
      print(`${answer.runnerPool.name}  ${answer.runnerPool.id}`)
      note(`Next: windlass pools token ${name}`)
    })
  })
}

const TOKEN_HELP = '\n<pool> is the id or the name of a pool.\n  windlass pools token default'

function addToken(group: Command): void {
  const command = rowCommand(group, 'token', ops.pools.createToken, TOKEN_HELP)
  does(command, async (session, positional, options) => {
    const args = await rowArgs(ops.pools.createToken, positional, options)
    const pool = await poolId(session.client, args.pool)
    const answer = await session.client.pools.createToken({ ...args, pool })
    await session.answer(answer, () => {
      const { token, uses, expiresAt } = answer.registrationToken
      print(token)
      note(`It serves ${uses === 1 ? 'once' : `${uses} times`}, until ${timeText(expiresAt)}, and is not shown again.`)
      const address = addressForOthers(session.settings.url)
      note(`Next, on the machine that joins: windlass agent start --url ${address} --token ${token}`)
    })
  })
}

/** A loopback address means the joining machine itself there. Which of ours it can reach, only a person knows. */
function addressForOthers(address: string): string {
  const { protocol, hostname, port } = new URL(address)
  if (!/^(localhost|127\..*|\[::1\])$/.test(hostname)) return address
  return `${protocol}//<address of this machine>${port && `:${port}`}`
}

const PAGES = 50

/** People know a pool by its name; the operation wants the id. */
async function poolId(client: Client, given: string): Promise<string> {
  if (given.startsWith('pool_')) return given
  let cursor: string | undefined
  for (let page = 0; page < PAGES; page++) {
    const answer = await client.pools.list({ limit: 100, cursor })
    const found = answer.runnerPools.find((pool) => pool.name === given)
    if (found) return found.id
    if (answer.nextCursor === null) break
    cursor = answer.nextCursor
  }
  throw new Failure(`There is no pool \`${given}\`.`, 'windlass pools list', EXIT.refused, 'NOT_FOUND')
}

function addRunnerList(group: Command): void {
  does(rowCommand(group, 'list', ops.runners.list), async (session, positional, options) => {
    const answer = await session.client.runners.list(await rowArgs(ops.runners.list, positional, options))
    await session.answer(answer, async () => {
      const rows = answer.runners.map((r) => [
        r.id,
        r.name,
        r.pool.name,
        r.status,
        `${r.activeRuns}/${r.slots}`,
        cellTime(r.lastHeartbeatAt),
        r.version,
      ])
      await printTable(['RUNNER', 'NAME', 'POOL', 'STATUS', 'BUSY', 'HEARD OF?', 'VERSION?'], rows)
      if (rows.length === 0) note('No runners. Next: windlass pools token default')
      tellNextPage(answer.nextCursor)
    })
  })
}

function addRunnerGet(group: Command): void {
  does(rowCommand(group, 'get', ops.runners.get), async (session, positional, options) => {
    const { runner } = await session.client.runners.get(await rowArgs(ops.runners.get, positional, options))
    await session.answer({ runner }, () =>
      printFields([
        ['runner', runner.id],
        ['name', runner.name],
        ['pool', runner.pool.name],
        ['status', runner.status],
        ['busy', `${runner.activeRuns} of ${runner.slots} slots`],
        ['labels', runner.labels.join(', ') || '-'],
        ['version', `${runner.version} on ${runner.platform}`],
        ['joined', timeText(runner.createdAt)],
        ['last poll', timeText(runner.lastPollAt)],
        ['last heartbeat', timeText(runner.lastHeartbeatAt)],
      ]),
    )
  })
}
