import path from 'node:path'
import { createLog } from '@windlass/shared/log.ts'
import type { Entry } from '@windlass/shared/wire/agent.ts'
import { openSpool } from '../../run/spool/spool.ts'

// Fills a spool until its run is cut, waits until that stands in the files, and says how many lines there were.
const [folder = '', cutAfterMs = ''] = process.argv.slice(2)
const options = { folder: path.join(folder, 'spool'), runBytes: 1e9, totalBytes: 50_000, cutAfterMs: Number(cutAfterMs) }
const spool = await openSpool({ ...options, log: createLog({}, 'error') })
const line: Entry = ['e', 1, 'log.stdout', JSON.stringify({ text: 'x'.repeat(1_000) })]
spool.open([['run_a', 1]])
let count = 0
for (; !spool.find('run_a', 1)?.gap; count++) await spool.append('run_a', 1, [line])
for (let more = 0; more < 20; more++, count++) void spool.append('run_a', 1, [line])
spool.flush()
process.send?.(count)
setInterval(() => {}, 1e9)
