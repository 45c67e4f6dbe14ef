import { AsyncResource } from 'node:async_hooks'
import { log } from 'windlass'

let runs = 0
let late

export function run({ leave, fail }) {
  runs += 1
  const clean = process.env.LEFT_BEHIND === undefined && process.cwd() !== '/'
  process.env.LEFT_BEHIND = 'yes'
  process.chdir('/')
  if (leave === 'timer') setInterval(() => {}, 1000)
  if (leave === 'unrefed timer') setInterval(() => log('too late'), 10).unref()
  if (leave === 'listener') process.on('exit', () => {})
  if (leave === 'a call') late ??= AsyncResource.bind(() => log('of the first'))
  late?.()
  if (fail) throw new Error('as asked')
  return { runs, clean, pid: process.pid }
}
