let runs = 0

export function run({ leave, fail }) {
  runs += 1
  const clean = process.env.LEFT_BEHIND === undefined && process.cwd() !== '/'
  process.env.LEFT_BEHIND = 'yes'
  process.chdir('/')
  if (leave === 'timer') setInterval(() => {}, 1000)
  if (leave === 'listener') process.on('exit', () => {})
  if (fail) throw new Error('as asked')
  return { runs, clean, pid: process.pid }
}
