export function run({ how }) {
  if (how === 'timer') setTimeout(() => { throw new RangeError('in a timer') }, 1)
  else void Promise.reject(new RangeError('in a promise'))
  return new Promise(() => setInterval(() => {}, 1000))
}
