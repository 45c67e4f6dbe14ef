import { main } from './program.ts'

// `windlass runs list | head` closes the pipe early; that is no error of anybody.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit(0)
})

await main(process.argv.slice(2))
