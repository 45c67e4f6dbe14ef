import { execFileSync, spawnSync } from 'node:child_process'
import { inherited } from './start-process.ts'
import { until } from './until.ts'

/** A shell in a real terminal of a given size, driven by keys and read off its screen. */
export interface Terminal {
  /** Types a line and presses Enter. */
  type(line: string): void
  /** Types without Enter. */
  text(text: string): void
  /** Keys by the names that tmux knows, such as `C-c` or `Tab`. */
  keys(...names: string[]): void
  /** The screen, a line each, without what is behind their ends. */
  screen(): string[]
  /** The screen with the escape sequences of its colours. */
  colours(): string
  /** Waits until the screen matches, and answers it. */
  shows(what: RegExp, ms?: number): Promise<string>
  /** Empties the screen. */
  clear(): Promise<void>
  close(): void
}

export interface TerminalOptions {
  columns: number
  env: Record<string, string>
  cwd: string
}

/** Why no terminal can be driven here, or false. */
export function whyNoTmux(): string | false {
  return spawnSync('tmux', ['-V']).status === 0 ? false : 'tmux is not installed'
}

const ROWS = 40
/** A deploy and a run of a busy machine included. */
const LATEST_MS = 120_000
let terminals = 0

export function openTerminal({ columns, env, cwd }: TerminalOptions): Terminal {
  // A server of its own, which ends with it.
  const socket = `windlass-test-${process.pid}-${++terminals}`
  const tmux = (...args: string[]) =>
    execFileSync('tmux', ['-L', socket, '-f', '/dev/null', ...args], {
      encoding: 'utf8',
      env: { ...inherited(), TERM: 'xterm-256color', PS1: '$ ', ...env },
      cwd,
    })
  const shell = ['env', 'PS1=$ ', 'bash', '--norc', '--noprofile', '-i']
  tmux('new-session', '-d', '-x', String(columns), '-y', String(ROWS), ...shell)
  const keys = (...names: string[]) => void tmux('send-keys', ...names)
  const text = (typed: string) => void tmux('send-keys', '-l', '--', typed)
  const screen = () => tmux('capture-pane', '-p').trimEnd().split('\n')
  const shows = async (what: RegExp, ms = LATEST_MS) => {
    const match = () => what.test(screen().join('\n'))
    await until(`${what.source} on the screen`, match, { ms, more: () => screen().join('\n') })
    return screen().join('\n')
  }
  return {
    keys,
    text,
    screen,
    shows,
    type: (line) => {
      text(line)
      keys('Enter')
    },
    colours: () => tmux('capture-pane', '-p', '-e'),
    async clear() {
      keys('C-l')
      await until('an empty screen', () => screen().length === 1, { ms: LATEST_MS, more: () => screen().join('\n') })
    },
    close: () => void spawnSync('tmux', ['-L', socket, 'kill-server']),
  }
}
