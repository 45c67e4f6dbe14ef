import { runAgent } from '../../run-agent.ts'

// As the command line starts an agent: with its token in an argument.
const [url, home, token] = process.argv.slice(2)
process.exit(await runAgent({ url, home, token, config: 'none' }, { PATH: process.env.PATH }))
