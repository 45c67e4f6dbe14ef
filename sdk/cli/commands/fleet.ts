import type { Command } from 'commander'
import { groupCommand } from '../from-table.ts'
import { addPools } from './pools.ts'
import { addRunners } from './runners.ts'

/** `pools` and `runners`: where runs execute. */
export function addFleet(program: Command): void {
  addPools(groupCommand(program, 'pools'))
  addRunners(groupCommand(program, 'runners'))
}
