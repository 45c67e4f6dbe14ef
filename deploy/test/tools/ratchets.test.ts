import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { checkRatchets, findOffenders, shrinkLists } from '../../tools/ratchets.ts'
import type { Found } from '../../tools/ratchets.ts'
import { LISTS } from '../../tools/ratchets/list.ts'

const root = mkdtempSync(path.join(tmpdir(), 'ratchets-'))

const git = (...args: string[]) => execFileSync('git', args, { cwd: root })
const listOf = (name: string) => path.join(LISTS, `${name}.txt`)

function write(files: Readonly<Record<string, string>>): void {
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true })
    writeFileSync(path.join(root, file), text)
  }
}

const aFunction = (lines: number) => `export function long() {\n${'  void 0\n'.repeat(lines - 2)}}\n`
const wide = `-- ${'w'.repeat(118)}\n`

const MAIN = "import { a } from './a.ts'\nimport { b } from './b.ts'\nconsole.log(a, b)\n"

/** The term for a run, a column, a field of the API, and a part of another word. */
const FINE_NAMES = `function placeRun({ live }: { live: number }) {
  const lives = [{ place: live }]
  return lives
}
export const b = placeRun({ live: 2 })
`

/** A project that breaks nothing. */
const SOUND = {
  'package.json': '{ "name": "sound", "type": "module" }\n',
  [`${LISTS}/knip.jsonc`]: '{ "entry": ["agent/main.ts"], "project": ["**/*.ts"] }\n',
  'agent/main.ts': MAIN,
  'agent/a.ts': 'export const a = 1\n',
  'agent/b.ts': FINE_NAMES,
  'coordinator/db/1.sql': '-- short\n',
}

/** An offence against each rule, and programs that are written wrong on purpose. */
const PLANTED = {
  'package.json': '{ "name": "sound", "type": "module", "dependencies": { "left-over": "1.0.0" } }\n',
  'agent/main.ts': `${MAIN}import { long } from './long.ts'\nimport './many.ts'\nlong()\n`,
  'agent/a.ts': "import type { B } from './b.ts'\nexport const a: B = 1\nexport const unnamed = 2\n",
  'agent/b.ts': "import { a } from './a.ts'\nexport type B = number\nexport const b = a\n",
  'agent/long.ts': aFunction(81),
  'agent/many.ts': '// many\n'.repeat(301),
  'agent/cgroup-place.mjs': '',
  'agent/orphan.ts': 'export const isKept = true\n',
  'coordinator/db/1.sql': wide,
  'deploy/e2e/programs/wrong.ts': `// ${wide}${aFunction(400)}`,
}

const GROWN = {
  'agent/long.ts': aFunction(82),
  'agent/many.ts': '// many\n'.repeat(302),
  'coordinator/db/1.sql': wide + wide,
}

interface Ratchet {
  readonly lines: readonly string[]
  readonly offence: RegExp
  readonly grown?: RegExp
}

const RATCHETS: Readonly<Record<keyof Found, Ratchet>> = {
  cycles: {
    lines: ['agent/a.ts agent/b.ts', 'agent/b.ts agent/a.ts'],
    offence: /^agent\/a\.ts imports agent\/b\.ts, which leads back to it: move /,
  },
  functions: {
    lines: ['agent/long.ts 81 long'],
    offence: /^agent\/long\.ts has a function of more than 80 lines: long, 81: take /,
    grown: /: long, 82, and had 81 when it was listed: /,
  },
  files: {
    lines: ['agent/many.ts 301'],
    offence: /^agent\/many\.ts has more than 300 lines: 301: give /,
    grown: /: 302, and had 301 when it was listed: /,
  },
  lines: {
    lines: ['coordinator/db/1.sql 1'],
    offence: /^coordinator\/db\/1\.sql has lines of more than 120 columns: 1: break /,
    grown: /: 2, and had 1 when it was listed: /,
  },
  names: {
    lines: ['agent/cgroup-place.mjs', 'agent/orphan.ts isKept'],
    offence: /^agent\/orphan\.ts declares isKept, with a word that says too little: name it by its kind/,
  },
  exports: {
    lines: ['agent/a.ts unnamed'],
    offence: /^agent\/a\.ts exports unnamed, which no other file names: take /,
  },
  unused: {
    lines: ['agent/orphan.ts', 'package.json left-over'],
    offence: /^package\.json declares left-over, which no file imports: take /,
  },
}

let sound: Found
let planted: Found
let grown: Found

/** The tools take their time: each state of the project is looked at once, for all ratchets. */
before(async () => {
  git('init', '--quiet')
  write(SOUND)
  sound = await findOffenders(root)
  write(PLANTED)
  planted = await findOffenders(root)
  write(GROWN)
  grown = await findOffenders(root)
})
after(() => rmSync(root, { recursive: true }))

/** The project's lists are these and no others. */
function listed(lists: Readonly<Record<string, readonly string[]>>): void {
  for (const name of Object.keys(RATCHETS)) rmSync(path.join(root, listOf(name)), { force: true })
  for (const [name, lines] of Object.entries(lists)) write({ [listOf(name)]: `# a title\n${lines.join('\n')}\n` })
}

/** What is found of one rule, while nothing breaks the others. */
function only(name: keyof Found, found: Found): Found {
  return { ...sound, [name]: found[name] }
}

test('a sound project needs no lists', () => {
  listed({})
  assert.deepEqual(checkRatchets(root, sound), [])
})

for (const name of Object.keys(RATCHETS) as (keyof Found)[]) {
  const { lines, offence, grown: growth } = RATCHETS[name]

  test(`${name}: a planted offender fails with a sentence, and only a list that names it lets it pass`, () => {
    listed({})
    const sentences = checkRatchets(root, only(name, planted))
    assert.equal(sentences.length, lines.length, sentences.join('\n'))
    assert.ok(
      sentences.some((sentence) => offence.test(sentence)),
      sentences.join('\n'),
    )
    listed({ [name]: lines })
    assert.deepEqual(checkRatchets(root, only(name, planted)), [])
  })

  test(`${name}: a listed offender that is mended has to leave the list, and shrinking does that`, () => {
    listed({ [name]: lines })
    const sentences = checkRatchets(root, sound)
    assert.equal(sentences.length, lines.length)
    for (const sentence of sentences)
      assert.match(sentence, /no longer so: .* only shrink.*`npm run check -- --shrink`/)
    shrinkLists(root, sound)
    assert.equal(existsSync(path.join(root, listOf(name))), false)
  })

  test(`${name}: shrinking never adds`, () => {
    listed({})
    shrinkLists(root, only(name, planted))
    assert.match(checkRatchets(root, only(name, planted)).join('\n'), new RegExp(offence, 'm'))
  })

  if (!growth) continue

  test(`${name}: a listed offender may not grow, and has to be listed with less when it shrank`, () => {
    listed({ [name]: lines })
    shrinkLists(root, only(name, grown))
    assert.match(checkRatchets(root, only(name, grown)).join('\n'), growth)

    listed({ [name]: lines.map((line) => line.replace(/ \d+/, ' 500')) })
    assert.match(checkRatchets(root, only(name, planted)).join('\n'), /500.*, which is now \d+: .* only shrink/)
    shrinkLists(root, only(name, planted))
    assert.deepEqual(
      readFileSync(path.join(root, listOf(name)), 'utf8')
        .split('\n')
        .slice(2, -1),
      lines,
    )
  })
}

test('shrinking follows a file that `git mv` moved, in both columns', async (t) => {
  t.after(() => git('reset', '--quiet', '--hard'))
  write(PLANTED)
  listed({ cycles: RATCHETS.cycles.lines, functions: RATCHETS.functions.lines })
  git('add', '.')
  git('-c', 'user.name=a', '-c', 'user.email=a@b.c', 'commit', '--quiet', '--message', 'before')
  git('mv', 'agent/a.ts', 'agent/z.ts')
  const moved = { ...sound, functions: planted.functions, cycles: renamed(planted.cycles) }
  assert.equal(checkRatchets(root, moved).length, 4)
  shrinkLists(root, moved)
  assert.deepEqual(checkRatchets(root, moved), [])
})

const renamed = (found: Found['cycles']) => found.map(({ file, what = '' }) => ({ file: zFor(file), what: zFor(what) }))
const zFor = (file: string) => file.replace('agent/a.ts', 'agent/z.ts')
