import { EXIT } from './exit-codes.ts'
import { Failure } from './failure.ts'

const ENTER = /\r\n|\r|\n/
const INTERRUPT = '\u0003'
const END = '\u0004'
// What a key like an arrow sends, and what a terminal puts around a pasted text.
// oxlint-disable-next-line no-control-regex -- it is what is looked for
const SEQUENCE = /\u001b\[[0-?]*[ -/]*[@-~]|\u001bO[A-Z]/g

/** Asks for a line that is not shown. Only for a terminal. */
export async function hiddenPrompt(label: string): Promise<string> {
  const { stdin, stderr } = process
  stderr.write(`${label}: `)
  stdin.setRawMode(true)
  stdin.setEncoding('utf8')
  try {
    return await lineOf(stdin)
  } finally {
    stdin.setRawMode(false)
    // Else it would keep the process.
    stdin.pause()
    stderr.write('\n')
  }
}

async function lineOf(stdin: NodeJS.ReadStream): Promise<string> {
  let typed = ''
  const pieces = stdin.iterator({ destroyOnReturn: false }) as AsyncIterable<string>
  for await (const piece of pieces) {
    const plain = piece.replace(SEQUENCE, '')
    if (plain.includes(INTERRUPT))
      throw new Failure('Nothing was set.', 'the same command again', EXIT.interrupted, 'INTERRUPTED')
    const [line = '', ...after] = plain.split(ENTER)
    typed = edited(typed, line)
    if (line.includes(END) || after.length > 0) return whole(typed, after)
  }
  return typed
}

/** Backspace takes a character, Ctrl-U the line. */
function edited(before: string, keys: string): string {
  let text = Array.from(before)
  for (const key of keys) {
    if (key === '\u007f' || key === '\b') text.pop()
    else if (key === '\u0015') text = []
    else if (key >= ' ') text.push(key)
  }
  return text.join('')
}

/** A pasted text of several lines would lose all but the first without a word. */
function whole(line: string, after: string[]): string {
  if (after.every((rest) => rest === '')) return line
  throw new Failure(
    'Several lines were pasted, and the prompt takes one.',
    'pipe the value in, or name a file by --file',
  )
}
