import { phase } from 'windlass'

const ready = await new Promise((resolve) => setTimeout(resolve, 5, 'ready'))

export function run() {
  phase('begun')
  return ready
}
