import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { aRedactor } from '../../_kit/a-redactor.ts'

// What real tools print of a secret, where this machine has them. What it has not is written here as those write it.

const AWS = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY='
const PASSWORD = '#~pa$$w0rd`x`!-lo;n{g},\\ *e?[n]^o|u<g>h& (\'q\') "q":~/x=~ end'
const FOREIGN = 'pässword-日本-"l\'o\\ng'

function printed(secret: string, command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): string {
  const { PATH } = process.env
  return execFileSync(command, args, { env: { PATH, S: secret, ...env }, encoding: 'utf8', timeout: 60_000 })
}

function isThere(command: string, args: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore', timeout: 60_000 })
    return true
  } catch {
    return false
  }
}

const SHELLS: Record<string, string> = {
  'export -p': 'export -p | grep " S="',
  'declare -p': 'declare -p S',
  'printf %q': 'printf "%q" "$S"',
  'printf %q of a longer text': 'printf "%q" "--password=$S"',
  'set -x': 'exec 2>&1; set -x; : "$S"',
  '${S@Q}': 'echo "${S@Q}"',
  '${S@A}': 'echo "${S@A}"',
  set: "set | grep '^S='",
}
const hasBash = isThere('bash', ['-c', 'true'])
for (const [name, script] of Object.entries(SHELLS))
  test(`what bash prints is hidden: ${name}`, { skip: !hasBash && 'needs bash' }, () => {
    for (const secret of [AWS, PASSWORD, FOREIGN, `tab\tbell\x07${PASSWORD}`])
      for (const LC_ALL of ['C', 'C.UTF-8'])
        assertHidden(secret, printed(secret, 'bash', ['--norc', '-c', script], { LC_ALL }))
  })

const PYTHON: Record<string, string> = {
  quote: 'from urllib.parse import quote; print(quote(s))',
  'quote without /': "from urllib.parse import quote; print(quote(s, safe=''))",
  quote_plus: 'from urllib.parse import quote_plus; print(quote_plus(s))',
  bytes: 'print(repr(s.encode())); print(repr((\'"\' + s + "\'").encode()))',
  'json.dumps': 'import json; print(json.dumps(s)); print(json.dumps(json.dumps(s)))',
  'shlex.quote': 'import shlex; print(shlex.quote(s))',
}
const hasPython = isThere('python3', ['-c', ''])
for (const [name, script] of Object.entries(PYTHON))
  test(`what Python prints is hidden: ${name}`, { skip: !hasPython && 'needs python3' }, () => {
    const begin = 'import os, sys; sys.stdout.reconfigure(encoding="utf-8"); s = os.environb[b"S"].decode(); '
    for (const secret of [AWS, PASSWORD, FOREIGN])
      assertHidden(secret, printed(secret, 'python3', ['-c', begin + script]))
  })

test('what Go, .NET and Gson write is hidden', () => {
  const hidden = [
    [AWS, 'wJalrXUtnFEMI%2FK7MDENG+bPxRfiCYEXAMPLEKEY='], // url.PathEscape, url.UserPassword
    ['a b/c+d?e:f@g', 'a%20b%2Fc+d%3Fe:f@g'], // url.PathEscape
    ['a b/c+d?e:f@g', 'a%20b%2Fc+d%3Fe%3Af%40g'], // url.UserPassword
    ['~a b/c*', '~a+b%2Fc%2A'], // url.QueryEscape
    [AWS, String.raw`wJalrXUtnFEMI/K7MDENG\u002BbPxRfiCYEXAMPLEKEY=`], // System.Text.Json
    [`"ü+'x\\`, String.raw`\u0022\u00FC\u002B\u0027x\\`],
    [AWS, String.raw`wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY\u003d`], // Gson
    [`<ü'="x`, String.raw`\u003cü\u0027\u003d\"x`],
    ['<ü&ü>', String.raw`\u003cü\u0026ü\u003e`], // encoding/json
    ['<ü&ü>', String.raw`\\u003cü\\u0026ü\\u003e`],
  ] as const
  for (const [secret, written] of hidden) assert.equal(aRedactor({ secret }).text(`a ${written} b`), 'a *** b')
})

/** All but what each tool puts around it, such as the backslash that some set before the first character alone. */
function assertHidden(secret: string, text: string): void {
  const shown = aRedactor({ secret }).text(text)
  const rest = shown.replace(/declare -x |--password(\\?=)|[:+]|S=|\\|b?["']+|\$|\*\*\*|\s/g, '')
  assert.equal(rest, '', `${shown} of ${text}`)
  assert.ok(shown.includes('***'))
}
