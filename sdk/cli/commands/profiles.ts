import type { Command } from 'commander'
import { isReadable } from '@windlass/shared/loopback.ts'
import { ApiError, createClient } from '../../client/index.ts'
import type { Client } from '../../client/index.ts'
import { checkedUrl } from '../checked-url.ts'
import { Failure } from '../failure.ts'
import { localInstance } from '../local-instance.ts'
import { checkedName, LOCAL, profileNamed, readProfiles, writeProfiles } from '../profiles.ts'
import type { Profile, Profiles } from '../profiles.ts'
import { secretText } from '../secret-text.ts'
import { does } from '../session.ts'
import type { Session } from '../session.ts'
import { settingsFrom } from '../settings.ts'
import { printTable } from '../table.ts'
import { behindBar, note, paint, print, safe } from '../terminal.ts'

const HELP = `
A profile is an address with the credentials for it, and they are sent to no other. Profiles are kept in
~/.config/windlass/config.json (WINDLASS_CONFIG names another file), readable by you alone.
  windlass profiles add prod --url https://windlass.example.com    asks for the key, without showing it
  windlass profiles add prod --session -                           adds a session, for keys and secrets
  windlass --profile prod runs list                                one command; WINDLASS_PROFILE for a shell
  windlass profiles use prod                                       from now on; \`use local\` is what npm start runs`

/** `profiles` and `whoami`: which service, and as whom. */
export function addProfiles(program: Command): void {
  const group = program
    .command('profiles')
    .description('Services by name, with the credentials for each.')
    .addHelpText('after', HELP)
  addList(group)
  addAdd(group)
  addUse(group)
  addRemove(group)
  addWhoami(program)
}

function addList(group: Command): void {
  const command = group
    .command('list')
    .description('List the profiles. Keys are not shown.')
    .addHelpText('after', '\n  windlass profiles list')
  does(command, async (session) => {
    const known = readProfiles(process.env)
    const profiles = listed(known)
    await session.answer({ profiles }, async () => {
      const rows = profiles.map((p) => [p.current ? '*' : '', p.name, p.url, p.org ?? '-', heldText(p)])
      await printTable(['', 'PROFILE', 'URL', 'ORG?', 'HAS?'], rows)
      if (rows.length === 0) note('No profiles. Next: windlass profiles add <name> --url <url>')
    })
  })
}

interface Listed {
  name: string
  url: string
  org: string | undefined
  current: boolean
  hasApiKey: boolean
  hasSession: boolean
}

function listed({ current, profiles }: Profiles): Listed[] {
  const local = localInstance(process.env, process.cwd())
  const all: [string, Profile][] = [
    ...Object.entries(profiles),
    ...(local ? [[LOCAL, local] as [string, Profile]] : []),
  ]
  return all.map(([name, { url, org, apiKey, session }]) => ({
    name,
    url,
    org,
    current: name === (current ?? LOCAL),
    hasApiKey: apiKey !== undefined,
    hasSession: session !== undefined,
  }))
}

function heldText({ hasApiKey, hasSession }: Listed): string {
  return [hasApiKey ? 'API key' : '', hasSession ? 'session' : ''].filter((text) => text !== '').join(', ') || '-'
}

function addAdd(group: Command): void {
  const command = group
    .command('add')
    .description('Keep a service under a name, or change what is kept. The first one is used from then on.')
    .argument('<name>')
    .option('--use', 'use it from now on')
    .addHelpText('after', `${HELP}\n--api-key - and --session - ask for the value, or read it from standard input.`)
  does(command, async (session, [given = ''], options) => {
    const name = checkedName(given)
    const profile = await wanted(session, name, readProfiles(process.env).profiles[name])
    const checked = await checkedCredentials(profile)
    // As it is by now: a person or the service may have taken a while, and somebody may have kept another meanwhile.
    const known = readProfiles(process.env)
    const isFirst = Object.keys(known.profiles).length === 0
    const current = options['use'] === true || isFirst ? name : known.current
    const all = { ...known.profiles, [name]: checked }
    const file = writeProfiles(process.env, { ...(current && { current }), profiles: all })
    await session.answer({ profile: { name, url: checked.url, org: checked.org, current: current === name } }, () => {
      print(`${name} is kept in ${file}${current === name ? ', and used from now on' : ''}`)
      note(current === name ? 'Next: windlass whoami' : `Next: windlass profiles use ${name}`)
    })
  })
}

/** What was kept, and over it what is given. A new address gets nothing of what was kept for the old one. */
async function wanted({ flags }: Session, name: string, saved: Profile | undefined): Promise<Profile> {
  const url = flags.url === undefined ? saved?.url : checkedUrl(flags.url)
  if (url === undefined) throw new Failure('The address is missing.', `windlass profiles add ${name} --url https://…`)
  if (isReadable(url)) note(`${url} is plain http to another machine: what is sent there can be read on the way.`)
  const old = saved?.url === url ? saved : undefined
  const isBare = flags.apiKey === undefined && flags.session === undefined && old?.apiKey === undefined
  const apiKey = await credential('API key', flags.apiKey ?? (isBare ? '-' : undefined))
  const session = await credential('Session', flags.session)
  const org = flags.org ?? old?.org
  return { ...old, url, ...(org && { org }), ...(apiKey && { apiKey }), ...(session && { session }) }
}

function credential(label: string, given: string | undefined): Promise<string | undefined> | string | undefined {
  return given === '-' ? secretText(label).then((text) => text.trim() || undefined) : given
}

/** What the service says of the credentials; one that it refuses is not kept. Says the org where none was given. */
async function checkedCredentials(profile: Profile): Promise<Profile> {
  let org = profile.org
  for (const apiKey of [profile.apiKey, profile.session]) {
    if (apiKey === undefined) continue
    const found = await orgOf(createClient({ url: profile.url, apiKey }))
    if (org !== undefined && found !== undefined && found !== org)
      throw new Failure(
        `The credential is of the org ${found}, not ${org}.`,
        `leave out --org, or make a credential of ${org}`,
      )
    org ??= found
  }
  return { ...profile, ...(org !== undefined && { org }) }
}

async function orgOf(client: Client): Promise<string | undefined> {
  try {
    return (await client.account.get({}, { deadlineMs: 10_000 })).me.org.slug
  } catch (error) {
    if (!(error instanceof ApiError) || error.code === 'UNAUTHENTICATED') throw error
    note(paint('yellow', `warning: the credential is kept unchecked: ${error.message}`))
    return undefined
  }
}

function addUse(group: Command): void {
  const command = group
    .command('use')
    .description('Use a profile wherever none is named; `local` for the instance that npm start runs.')
    .argument('<name>')
    .addHelpText('after', '\n  windlass profiles use prod')
  does(command, async (session, [name = '']) => {
    const known = readProfiles(process.env)
    if (name !== LOCAL) profileNamed(known, name)
    writeProfiles(process.env, { current: name, profiles: known.profiles })
    await session.answer({ current: name }, () => {
      print(`${name} is used from now on`)
      note('Next: windlass whoami')
    })
  })
}

function addRemove(group: Command): void {
  const command = group
    .command('remove')
    .description('Forget a profile and its credentials.')
    .argument('<name>')
    .addHelpText('after', '\n  windlass profiles remove prod')
  does(command, async (session, [name = '']) => {
    const known = readProfiles(process.env)
    profileNamed(known, name)
    const { [name]: _, ...profiles } = known.profiles
    const { current } = known
    writeProfiles(process.env, { ...(current && current !== name && { current }), profiles })
    await session.answer({ removed: name }, () => {
      print(`${name} is forgotten`)
      note('Its key still serves. Next: windlass keys revoke <key>, where it should not')
    })
  })
}

function addWhoami(program: Command): void {
  const command = program
    .command('whoami')
    .description('Say which service is meant, and as whom it is called.')
    .addHelpText('after', '\n  windlass whoami\n  windlass --profile prod whoami')
  does(command, async (session) => {
    const { url, from, session: token, apiKey } = settingsFrom(session.flags)
    const { me } = await session.client.account.get({})
    const asSession = token !== undefined && apiKey !== undefined
    const also = asSession ? await createClient({ url, apiKey: token }).account.get({}) : undefined
    await session.answer({ url, from, me, ...(also && { session: also.me }) }, () => {
      print(`${url}, from ${from}`)
      print(behindBar(`org      ${me.org.slug} (${me.org.name})`, process.stdout))
      for (const { kind, id, name, role, scopes } of [me.credential, ...(also ? [also.me.credential] : [])]) {
        const may = scopes.join(' ') || 'all that its role may do'
        print(`${kind.padEnd(7)}  ${safe(name, process.stdout)}, ${role}, ${may}  ${id}`)
      }
      if (!also && me.credential.kind === 'key')
        note('No session is known: keys and secrets cannot be written from here.')
    })
  })
}
