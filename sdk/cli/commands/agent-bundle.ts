import path from 'node:path'
import type { Command } from 'commander'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import { during } from '../progress.ts'
import { does } from '../session.ts'
import { bytesText, note, print } from '../terminal.ts'
import { addAgentFlags, agentAt, AGENT_FLAGS_HELP } from './agent-flags.ts'
import type { AgentFlags } from './agent-flags.ts'

const HELP = `${AGENT_FLAGS_HELP}
Keys, tokens, secrets and whatever runs have reported are left out; what looks like a credential is masked in the rest. Nobody but
you can read the file. It is sent nowhere. Root looks as the user whose agent it is.
  windlass agent support-bundle
  windlass agent support-bundle -o /tmp/build-1.tgz`

interface BundleFlags extends AgentFlags {
  output?: string
}

export function addAgentBundle(group: Command): void {
  const command = group
    .command('support-bundle')
    .description('Gather what somebody needs who helps from afar, without secrets, into one file.')
    .option('-o, --output <file>', 'where to; windlass-agent-<name>-<time>.tgz in this folder when left out')
    .addHelpText('after', HELP)
  addAgentFlags(command)
  does(command, async (session, _positional, options) => {
    const flags = options as BundleFlags
    const located = await agentAt(session, flags)
    const { gather, openBundle } = await import('@windlass/agent/support/bundle.ts')
    const file = path.resolve(flags.output ?? defaultName(located.config.name))
    const signal = new AbortController().signal
    // First, as its folder may be root's alone, and root becomes the user of the agent.
    const bundle = await openBundle(file).catch((error: unknown) => refuse(file, error))
    const gathering = during(session.progress, 'looking at this machine', gather(located, signal))
    const pieces = await gathering.catch(async (error: unknown) => {
      await bundle.giveUp()
      throw error
    })
    await bundle.write(pieces).catch((error: unknown) => refuse(file, error))
    const content = pieces.map(({ name, about, text }) => ({ name, about, bytes: Buffer.byteLength(text) }))
    await session.answer({ file, content }, () => {
      print(file)
      for (const { name, about, bytes } of content) note(`  ${name.padEnd(16)} ${about} (${bytesText(bytes)})`)
      note('Look into it before you hand it on: tar -xzOf <file> shows all of it.')
    })
  })
}

function defaultName(name: string): string {
  const plain = name.replace(/[^\w.-]+/g, '-')
  const time = new Date().toISOString().replace(/[-:]|\..*/g, '')
  return `windlass-agent-${plain}-${time}.tgz`
}

function refuse(file: string, error: unknown): never {
  const { code = '', message } = error as NodeJS.ErrnoException
  const why = code === 'EEXIST' ? 'it is there already' : message
  throw new Failure(`${file} cannot be written: ${why}.`, 'windlass agent support-bundle -o <another file>', EXIT.usage)
}
