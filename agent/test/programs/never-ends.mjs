import { context } from 'windlass'

export async function run({ tidies } = {}) {
  setInterval(() => {}, 1000)
  console.log('waiting')
  await new Promise((resolve) => tidies && context.signal.addEventListener('abort', resolve))
  console.log(`stopped by ${context.signal.reason.name}`)
  return 'tidy'
}
