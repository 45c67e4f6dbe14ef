import type { Command } from 'commander'
import type { Finding } from '@windlass/agent/doctor/finding.ts'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import { does } from '../session.ts'
import type { Session } from '../session.ts'
import { json, note, paint, print, wrapped } from '../terminal.ts'
import type { Style } from '../terminal.ts'
import { addAgentFlags, agentAt, AGENT_FLAGS_HELP } from './agent-flags.ts'
import type { AgentFlags } from './agent-flags.ts'

const HELP = `${AGENT_FLAGS_HELP}
Each check has a deadline and changes nothing, neither here nor at the coordinator. Exit codes: 0 the agent can work, perhaps with
warnings · 1 something is in the way. Root looks as the user whose agent it is.
  windlass agent doctor
  windlass agent doctor --url https://windlass.example.org --ca-file /etc/ssl/our-ca.pem --slow`

interface DoctorFlags extends AgentFlags {
  slow?: boolean
}

export function addAgentDoctor(group: Command): void {
  const command = group
    .command('doctor')
    .description('Look at this machine and at the way to the coordinator, and say what to do.')
    .option('--ca-file <file>', 'certificates (PEM) that are trusted besides those of Node')
    .option('--allow-http', 'accept plain http with another machine, as an agent does that is started with it')
    .option('--slow', 'also whether a connection that is idle lives for 35 s')
    .addHelpText('after', HELP)
  addAgentFlags(command)
  does(command, async (session, _positional, options) => {
    const flags = options as DoctorFlags
    const findings = await consult(session, flags)
    const isFine = findings.every(({ verdict }) => verdict !== 'fail')
    if (session.isJson) print(json({ isFine, findings }))
    else print(summary(findings))
    return isFine ? EXIT.ok : EXIT.failed
  })
}

async function consult(session: Session, flags: DoctorFlags): Promise<Finding[]> {
  const onFinding = (finding: Finding) => (session.isJson ? undefined : tell(finding))
  const located = await agentAt(session, flags).catch((error: unknown) => badSettings(error))
  if ('verdict' in located) {
    onFinding(located)
    return [located]
  }
  const { examineAgent } = await import('@windlass/agent/doctor/doctor.ts')
  const { becomeOwner } = await import('@windlass/agent/support/owner.ts')
  const { config, settingsFile } = located
  const user = becomeOwner({ settingsFile, home: config.home })
  if (user !== undefined && !session.isJson) note(`As user ${user}, whose agent it is.`)
  const interrupted = new AbortController()
  process.once('SIGINT', () =>
    interrupted.abort(new Failure('Stopped.', 'the same again', EXIT.interrupted, 'INTERRUPTED')),
  )
  return examineAgent({ located, isSlow: flags.slow === true, signal: interrupted.signal, onFinding })
}

/** Settings that cannot be read are what is in the way, and nothing else can be asked. */
function badSettings(error: unknown): Finding {
  if (!(error instanceof Failure)) throw error
  return { check: 'settings', verdict: 'fail', message: error.message, fix: error.next }
}

const MARKS: Record<Finding['verdict'], [mark: string, style: Style]> = {
  ok: ['ok', 'green'],
  warn: ['warn', 'yellow'],
  fail: ['FAIL', 'red'],
  skipped: ['-', 'dim'],
}

const MARK = 6
const CHECK = 11

function tell({ check, verdict, message, fix }: Finding): void {
  const [mark, style] = MARKS[verdict]
  const indent = ' '.repeat(MARK + CHECK)
  const text = wrapped(message, indent, process.stdout).trimStart()
  print(paint(style, mark, process.stdout) + ' '.repeat(MARK - mark.length) + check.padEnd(CHECK) + text)
  if (fix === null) return
  const [first = '', ...more] = wrapped(`fix: ${fix}`, indent, process.stdout).split('\n')
  print([paint('bold', first, process.stdout), ...more].join('\n'))
}

function summary(findings: Finding[]): string {
  const count = (wanted: Finding['verdict']) => findings.filter(({ verdict }) => verdict === wanted).length
  const [fails, warns] = [count('fail'), count('warn')]
  const what =
    fails === 0 ? 'The agent can work here' : `${fails} ${fails === 1 ? 'thing is' : 'things are'} in the way`
  return `${what}${warns === 0 ? '' : `, ${warns} ${warns === 1 ? 'warning' : 'warnings'}`}.`
}
