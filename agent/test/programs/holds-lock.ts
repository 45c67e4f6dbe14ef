// Locks the state folder of its first argument, touches the lock each so many milliseconds, and says so.
import { lockState } from '../../state-lock.ts'

const [folder = '', touchMs] = process.argv.slice(2)
await lockState(folder, { touchMs: Number(touchMs) })
process.stdout.write('locked\n')
setInterval(() => {}, 1000)
