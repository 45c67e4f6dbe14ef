import type { Command } from 'commander'
import { ops } from '@windlass/shared/ops/index.ts'
import { rowArgs, rowCommand } from '../from-table.ts'
import { does } from '../session.ts'
import { note, print } from '../terminal.ts'

/** Disable, delete, roll back, and the way out of each. */
export function addLifecycle(group: Command): void {
  addPromote(group)
  addDisable(group)
  addEnable(group)
  addDelete(group)
  addRestore(group)
}

function addPromote(group: Command): void {
  does(rowCommand(group, 'promote', ops.workflows.promote), async (session, positional, options) => {
    const answer = await session.client.workflows.promote(await rowArgs(ops.workflows.promote, positional, options))
    await session.answer(answer, () => {
      const { slug, version } = answer.workflow
      print(`${slug} runs version ${version} from now on`)
    })
  })
}

function addDisable(group: Command): void {
  does(rowCommand(group, 'disable', ops.workflows.disable), async (session, positional, options) => {
    const answer = await session.client.workflows.disable(await rowArgs(ops.workflows.disable, positional, options))
    await session.answer(answer, () => {
      const { slug } = answer.workflow
      print(`${slug} is disabled: no run of it starts`)
      note(`Next: windlass workflows enable ${slug}; runs under way: windlass runs list --workflow ${slug}`)
    })
  })
}

function addEnable(group: Command): void {
  does(rowCommand(group, 'enable', ops.workflows.enable), async (session, positional, options) => {
    const answer = await session.client.workflows.enable(await rowArgs(ops.workflows.enable, positional, options))
    await session.answer(answer, () => print(`${answer.workflow.slug} is enabled`))
  })
}

function addDelete(group: Command): void {
  does(rowCommand(group, 'delete', ops.workflows.delete), async (session, positional, options) => {
    const args = await rowArgs(ops.workflows.delete, positional, options)
    await session.client.workflows.delete(args)
    await session.answer({}, () => {
      print(`${args.workflow} is deleted`)
      note(`Next: windlass workflows restore ${args.workflow} brings it back, for 30 days`)
    })
  })
}

function addRestore(group: Command): void {
  does(rowCommand(group, 'restore', ops.workflows.restore), async (session, positional, options) => {
    const answer = await session.client.workflows.restore(await rowArgs(ops.workflows.restore, positional, options))
    await session.answer(answer, () => {
      const { slug, version } = answer.workflow
      print(`${slug} is back, with version ${version}`)
    })
  })
}
