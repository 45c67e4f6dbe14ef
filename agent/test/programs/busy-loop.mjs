import { log } from 'windlass'

export function run() {
  log(String(process.pid))
  for (;;);
}
