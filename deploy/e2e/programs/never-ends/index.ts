import { log } from 'windlass'

/** Hears no signal and leaves no gap for one: only a kill ends it. */
export function run(): never {
  log('begun')
  for (;;) Math.random()
}
