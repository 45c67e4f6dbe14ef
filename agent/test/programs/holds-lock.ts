// Locks the state folder of its first argument, touches the lock each so many milliseconds, and says so, and what it
// warns of before.
import { aLog } from '../_kit/an-agent.ts'
import { lockState } from '../../state-lock.ts'

const [folder = '', touchMs] = process.argv.slice(2)
const { lines, log } = aLog()
await lockState(folder, { touchMs: Number(touchMs), log })
process.stdout.write(`${[...lines.map(({ name }) => name), 'locked'].join(' ')}\n`)
setInterval(() => {}, 1000)
