import { Option } from 'commander'
import type { Command } from 'commander'
import { PoolSettings, RunLimits } from '@windlass/shared/model/pool.ts'
import { lengthFlag } from '../duration-flag.ts'
import { Failure } from '../failure.ts'
import { fieldOf } from '../fields.ts'
import { jsonArgument } from '../json-argument.ts'

type Schema = Parameters<typeof fieldOf>[1] & { parse(value: unknown): unknown }
type Kind = 'choice' | 'number' | 'list' | 'length' | 'size'

/** One setting of a pool as a flag: `--memory 2g` for `limits.memoryMb`. */
interface SettingFlag {
  flag: string
  /** How commander names its value. */
  option: string
  /** Where it stands in the settings. */
  group: 'limits' | undefined
  name: string
  kind: Kind
  choices: string[] | undefined
  description: string
  schema: Schema
}

const { limits: _, ...own } = PoolSettings.shape
const FLAGS = [...flagsOf(own, undefined), ...flagsOf(RunLimits.shape, 'limits')]

function flagsOf(shape: object, group: SettingFlag['group']): SettingFlag[] {
  return (Object.entries(shape) as [string, Schema][]).map(([name, schema]) => {
    const { kind: plain, choices, description } = fieldOf(name, schema)
    const kind = kindOf(name, plain)
    const flag = fieldOf(name.replace(/(Ms|Mb)$/, ''), schema).flag
    const option = flag.replace(/-([a-z])/g, (_match, letter: string) => letter.toUpperCase())
    return { flag, option, group, name, kind, choices, description: plainText(description), schema }
  })
}

function kindOf(name: string, plain: string): Kind {
  if (name.endsWith('Ms')) return 'length'
  if (name.endsWith('Mb')) return 'size'
  if (plain === 'number' || plain === 'list') return plain
  return 'choice'
}

/** A flag takes `2g` where the schema counts MiB, and the help does not shout code marks. */
function plainText(description: string): string {
  return description.replace(/,? in MiB/, '').replaceAll('`', '')
}

const VALUES: Record<Kind, string> = {
  choice: 'one',
  number: 'number',
  list: 'list',
  length: 'duration',
  size: 'size',
}

/** A flag for each setting, `--reset` for taking some back, and `--settings` for all at once. */
export function addSettingFlags(command: Command): void {
  for (const { flag, kind, choices, description } of FLAGS) {
    const more = kind === 'list' ? 'Comma-separated.' : kind === 'size' ? 'Such as 512m or 2g.' : ''
    const option = new Option(`--${flag} <${VALUES[kind]}>`, [description, more].filter(Boolean).join(' '))
    command.addOption(choices && kind === 'choice' ? option.choices(choices) : option)
  }
  command.option('--settings <json>', 'settings as JSON, @file or - for standard input; flags go over them')
}

/** For a pool that is there: the names of settings that go back to their defaults. */
export function addResetFlag(command: Command): void {
  const option = new Option('--reset <list>', 'settings, by the names of their flags, that go back to their defaults')
  // For completion; a list of several is judged below.
  option.argChoices = FLAGS.map(({ flag }) => flag)
  command.addOption(option.argParser((text: string, before?: string[]) => [...(before ?? []), ...text.split(',')]))
}

export interface SettingsChange {
  [name: string]: unknown
  limits?: Record<string, unknown>
}

/** What was typed, as the operation takes it; the service judges the values. */
export async function settingsOf(options: Record<string, unknown>): Promise<SettingsChange> {
  const change = await settingsJson(options['settings'] as string | undefined)
  for (const name of (options['reset'] as string[] | undefined) ?? []) {
    const flag = resettable(name)
    // Not `null`: an isolation has a default and is never missing.
    put(change, flag, flag.schema.parse(undefined))
  }
  for (const flag of FLAGS) {
    const given = options[flag.option] as string | undefined
    if (given !== undefined) put(change, flag, valueOf(flag, given))
  }
  return change
}

async function settingsJson(text: string | undefined): Promise<SettingsChange> {
  if (text === undefined) return {}
  const value = await jsonArgument('--settings', text)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as SettingsChange
  throw new Failure('--settings takes an object.', `--settings '{"isolation":"bubblewrap","limits":{"memoryMb":2048}}'`)
}

function resettable(name: string): SettingFlag {
  const found = FLAGS.find(({ flag }) => flag === name)
  if (found) return found
  const names = FLAGS.map(({ flag }) => flag).join(', ')
  throw new Failure(`--reset: \`${name}\` is no setting of a pool.`, `one or more of ${names}`)
}

function put(change: SettingsChange, { group, name }: SettingFlag, value: unknown): void {
  if (group) change[group] = { ...change[group], [name]: value }
  else change[name] = value
}

function valueOf({ flag, kind }: SettingFlag, given: string): unknown {
  if (kind === 'length') return lengthFlag(`--${flag}`, given, `pools update … --${flag} 5m`)
  if (kind === 'size') return mebibytes(flag, given)
  if (kind === 'number') return numberOf(flag, given)
  if (kind === 'list') return given.split(',').filter((each) => each !== '')
  return given
}

function numberOf(flag: string, given: string): number {
  const value = Number(given)
  if (given.trim() !== '' && Number.isFinite(value)) return value
  throw new Failure(`--${flag} takes a number, not \`${given}\`.`, `--${flag} 8`)
}

const MIB: Record<string, number> = { '': 1, m: 1, g: 1024, t: 1024 * 1024 }

/** `2g`, `512m`, `1.5GiB`; a bare number is of MiB, as the setting is. */
function mebibytes(flag: string, given: string): number {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)\s*([mgt]?)(?:i?b)?$/i.exec(given.trim()) ?? []
  const size = amount === undefined ? Number.NaN : Number(amount) * (MIB[unit.toLowerCase()] ?? Number.NaN)
  if (Number.isFinite(size)) return Math.round(size)
  throw new Failure(`--${flag} takes a size, not \`${given}\`.`, `--${flag} 512m, or --${flag} 2g`)
}
