import type { Command } from 'commander'
import { isLoopbackHost } from '@windlass/shared/loopback.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { PoolDemand } from '@windlass/shared/model/pool.ts'
import { Failure } from '../failure.ts'
import { addResetFlag, addSettingFlags, settingsOf } from '../fleet/pool-settings.ts'
import { rowArgs, rowCommand } from '../from-table.ts'
import { printAnswer } from '../row-answer.ts'
import { does } from '../session.ts'
import { printFields, printTable } from '../table.ts'
import { lengthText, note, print, timeText } from '../terminal.ts'

export function addPools(group: Command): void {
  addCreate(group)
  addUpdate(group)
  addToken(group)
  addDemand(group)
}

const BY_NAME = '\n<pool> is the id or the name of a pool.'

const SETTINGS_HELP = `
What a machine says for itself goes over slots, parked and drain; of limits the lower one counts, of isolations the stricter one.`

function addCreate(group: Command): void {
  // The name is what it is about, so it is an argument rather than the flag that the row alone would give.
  const command = group
    .command('create')
    .description(ops.pools.create.summary)
    .argument('<name>', 'lower-case letters, digits and dashes')
    .addHelpText(
      'after',
      `${SETTINGS_HELP}\n  windlass pools create builders --isolation bubblewrap --memory 2g --slots 8`,
    )
  addSettingFlags(command)
  does(command, async (session, [name = ''], options) => {
    const answer = await session.client.pools.create({ name, settings: await settingsOf(options) })
    await session.answer(answer, () => {
      print(`${answer.runnerPool.name}  ${answer.runnerPool.id}`)
      note(`Next: windlass pools token ${name}`)
    })
  })
}

const UPDATE_HELP = `${BY_NAME} Only what is given changes; its machines hear of it with their next heartbeat.${SETTINGS_HELP}
  windlass pools update builders --memory 4g --cpus 2 --labels eu,ssd
  windlass pools update builders --reset memory,cpus`

function addUpdate(group: Command): void {
  const command = group.command('update').description(ops.pools.update.summary).argument('<pool>')
  addSettingFlags(command)
  addResetFlag(command)
  command.addHelpText('after', UPDATE_HELP)
  does(command, async (session, [given = ''], options) => {
    const settings = await settingsOf(options)
    if (Object.keys(settings).length === 0)
      throw new Failure('Nothing was said that is to change.', `windlass pools update ${given} --memory 2g`)
    const answer = await session.client.pools.update({ pool: given, settings })
    await session.answer(answer, () => printAnswer(ops.pools.get.cli, answer, {}))
  })
}

const TOKEN_HELP = `${BY_NAME}
  windlass pools token default
  windlass pools token builders --reusable --uses 20 --ttl-ms 3600000`

function addToken(group: Command): void {
  const command = rowCommand(group, 'token', ops.pools.createToken, TOKEN_HELP)
  does(command, async (session, positional, options) => {
    const answer = await session.client.pools.createToken(await rowArgs(ops.pools.createToken, positional, options))
    await session.answer(answer, () => {
      const { token, uses, expiresAt } = answer.registrationToken
      print(token)
      note(`It serves ${uses === 1 ? 'once' : `${uses} times`}, until ${timeText(expiresAt)}, and is not shown again.`)
      const address = addressForOthers(session.settings.url)
      note('Next, on the machine that joins; as root for a service of the system, else for one of your own:')
      note(`  curl -fsSL ${address}/install.sh | sh -s -- --token ${token}`)
      note('or, where `windlass` is there already:')
      note(`  windlass agent start --url ${address} --token ${token}`)
      if (address.startsWith('http:'))
        note(
          'Both refuse plain http to another machine: use an https address, or add --allow-http on a trusted network.',
        )
    })
  })
}

/** A loopback address means the joining machine itself there. Which of ours it can reach, only a person knows. */
function addressForOthers(address: string): string {
  const { protocol, hostname, port } = new URL(address)
  if (!isLoopbackHost(hostname)) return address
  return `${protocol}//<address of this machine>${port && `:${port}`}`
}

function addDemand(group: Command): void {
  const command = rowCommand(group, 'demand', ops.pools.demand, `${BY_NAME}\n  windlass pools demand default --json`)
  does(command, async (session, positional, options) => {
    const answer = await session.client.pools.demand(await rowArgs(ops.pools.demand, positional, options))
    await session.answer(answer, () => tellDemand(answer.demand))
  })
}

async function tellDemand(demand: PoolDemand): Promise<void> {
  const { runners, oldestQueuedAt, byLabels } = demand
  const waits =
    oldestQueuedAt === null ? '' : `, the oldest for ${lengthText(Math.max(0, Date.now() - oldestQueuedAt))}`
  const most = demand.queuedSlots === demand.queuedRuns ? '' : `, ${demand.queuedSlots} slots`
  printFields([
    ['pool', demand.pool.name],
    ['queued', `${demand.queuedRuns} runs${most}${waits}`],
    ['executing', `${demand.executingRuns} runs in ${demand.usedSlots} of ${demand.slots} slots`],
    ['free', `${demand.freeSlots} slots`],
    ['missing', `${demand.missingSlots} slots`],
    ['runners', `${runners.takingWork} take work, ${runners.draining} draining, ${runners.offline} offline`],
  ])
  // One line without labels says the same again.
  if (byLabels.every(({ labels }) => labels.length === 0)) return
  print('')
  const rows = byLabels.map((each) => [
    each.labels.join(', ') || '(any)',
    String(each.queuedRuns),
    String(each.queuedSlots),
    String(each.freeSlots),
  ])
  await printTable(['LABELS', 'QUEUED RUNS', 'QUEUED SLOTS', 'FREE SLOTS'], rows)
}
