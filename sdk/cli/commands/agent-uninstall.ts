import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import type { Command } from 'commander'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import { does } from '../session.ts'

/** In an installed agent this file is part of `lib`, beside which the script lies. */
const SCRIPT = path.join(import.meta.dirname, '..', 'uninstall.sh')

interface Flags {
  now?: boolean
  keepState?: boolean
  yes?: boolean
}

export function addAgentUninstall(group: Command): void {
  const command = group
    .command('uninstall')
    .description(
      'Remove the agent from this machine: it finishes what it executes, then service, program, settings and state go.',
    )
    .option('--now', 'do not wait for runs: they begin anew elsewhere')
    .option('--keep-state', 'leave its state: installed again it is the same agent')
    .option('--yes', 'ask nothing')
  does(command, (_session, _positional, options) => {
    if (!existsSync(SCRIPT))
      throw new Failure('This agent was not installed by install.sh.', 'stop it, and remove its state folder')
    const { now, keepState, yes } = options as Flags
    const flags = [now && '--now', keepState && '--keep-state', yes && '--yes'].filter(
      (flag) => typeof flag === 'string',
    )
    const { status, error } = spawnSync('/bin/sh', [SCRIPT, ...flags], { stdio: 'inherit' })
    if (error) throw error
    return Promise.resolve(status ?? EXIT.failed)
  })
}
