import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { PROJECT } from '../../tools/source-files.ts'

const pages = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'shared/ops/README.md',
  ...pagesOf('deploy/docs'),
]

function pagesOf(folder: string): string[] {
  return readdirSync(path.join(PROJECT, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `${folder}/${name}`)
}

const textOf = (page: string) => readFileSync(path.join(PROJECT, page), 'utf8')
/** The page without its code, in which a bracket is no link and `#` no heading. */
const proseOf = (page: string) => textOf(page).replace(/^```[^]*?^```$/gm, '')

/** Every relative link of a page, as it is written. */
function linksOf(page: string): string[] {
  const links = [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link!)
  return links.filter((link) => !/^[a-z]+:/.test(link))
}

/** Anchors of the headings of a page, by GitHub's rule. */
function anchorsOf(page: string): Set<string> {
  const headings = [...proseOf(page).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading!)
  const anchor = (heading: string) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-')
  return new Set(headings.map(anchor))
}

function brokenLinks(page: string): string[] {
  return linksOf(page).filter((link) => {
    const [file = '', anchor] = link.split('#')
    const target = file === '' ? page : path.posix.join(path.posix.dirname(page), file)
    if (!existsSync(path.join(PROJECT, target))) return true
    return anchor !== undefined && !(target.endsWith('.md') && anchorsOf(target).has(anchor))
  })
}

for (const page of pages) test(`every link in ${page} leads somewhere`, () => assert.deepEqual(brokenLinks(page), []))

test('files of the project that the pages name are there', () => {
  const file = /`((?:shared|coordinator|agent|sdk|deploy)\/[^`\s*<]+\.[a-z]+)`/g
  for (const page of pages)
    for (const [, name] of proseOf(page).matchAll(file))
      assert.ok(existsSync(path.join(PROJECT, name!)), `${page}: ${name}`)
})

test('README links to every page of deploy/docs, and has at most 120 lines', () => {
  assert.ok(textOf('README.md').trimEnd().split('\n').length <= 120)
  const linked = new Set(linksOf('README.md').map((link) => link.split('#')[0]))
  assert.deepEqual(
    pagesOf('deploy/docs').filter((page) => !linked.has(page)),
    [],
  )
})

test('a page begins with its title and a sentence', () => {
  for (const page of pages) {
    const text = textOf(page).replace(/<!--.*-->\n\n/, '')
    assert.match(text, /^# .+\n\n[A-Z][^]+?\./, page)
  }
})
