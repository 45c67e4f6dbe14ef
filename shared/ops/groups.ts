import type { Documented } from './example.ts'

/** What the operations of a group have in common. */
export const GROUPS: Readonly<Record<keyof Documented, string>> = {
  workflows: 'What is deployed: packages of files with a descriptor, in versions that never change.',
  runs: 'What is executed: start, read, follow, explain, cancel, retry. One execution of a workflow is one run, for good.',
  schedules: 'What starts runs by itself: by cron and time zone, at a rate, or once.',
  jobs: 'What is done to many runs at once: how far it is, and how to stop it.',
  events: 'What happens in an org, live.',
  inputs: 'What runs ask people, and the answers.',
  environments: 'Named sets of variables and secrets over those of the org.',
  variables: 'Settings of programs that anybody in the org may read.',
  secrets: 'Settings of programs that nobody reads back: only their names are shown.',
  webhooks: 'Where other systems start a workflow.',
  connections: 'Where providers such as GitHub, Stripe and Slack post what happens there.',
  deliveries: 'What came in at webhooks and connections, what became of it, and why.',
  hooks: 'What other systems call: they prove who they are by a signature or a secret.',
  pools: 'Groups of machines that execute runs, and the tokens by which a machine joins.',
  runners: 'The machines themselves: agents that were installed.',
  keys: 'Credentials of programs: what they may do, when they were last used, and their end.',
  orgs: 'The org: whose all of this is.',
  account: 'Whom a credential stands for.',
  audit: 'Who changed what, when, and by which credential.',
  service: 'The service itself: health, figures, and its descriptions for people, editors and generators.',
}
