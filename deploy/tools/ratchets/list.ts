// A list of today's offenders against one rule. It may only shrink: what is new or has grown fails, and so does what is
// mended and still listed.
export interface Offender {
  readonly file: string
  /** Which one of several in a file: the name of a function, the file that is imported. */
  readonly what?: string
  /** Size in lines. It may not grow either. */
  readonly size?: number
  /** Detail for the reader of the sentence; not listed. */
  readonly detail?: string
}

/** What a list is called, and the words for its offenders. */
export interface ListTexts {
  /** Name of the list's file, without its ending. */
  readonly name: string
  /** First line of the list's file. */
  readonly title: string
  /** What is wrong, as the rest of a sentence that begins with the file. */
  readonly wrong: (offender: Offender) => string
  readonly remedy: string
}

export const LISTS = 'deploy/tools/ratchets'
const SHRINK = 'npm run check -- --shrink'

export function parseList(text: string): Offender[] {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return lines.map((line) => {
    const [, file = line, size, what] = /^(\S+)(?: (\d+))?(?: (.+))?$/.exec(line) ?? []
    return { file, ...(size && { size: Number(size) }), ...(what && { what }) }
  })
}

export function formatList(texts: ListTexts, offenders: readonly Offender[]): string {
  const head = [
    `# ${texts.title}`,
    `# It may only shrink: \`${SHRINK}\` takes away what is mended and follows \`git mv\`.`,
  ]
  return [...head, ...offenders.map(lineOf).sort(byText), ''].join('\n')
}

/** A sentence for everything by which the list and the project differ. */
export function judge(texts: ListTexts, listed: readonly Offender[], found: readonly Offender[]): string[] {
  const before = byKey(listed)
  const now = byKey(found)
  const worse = found.flatMap((offender) => complaint(texts, offender, before.get(keyOf(offender))))
  const better = listed.filter((offender) => isBetter(offender, now.get(keyOf(offender))))
  return [...worse, ...better.map((offender) => mended(texts, offender, now.get(keyOf(offender))))]
}

function complaint(texts: ListTexts, offender: Offender, before: Offender | undefined): string[] {
  const detail = offender.detail ? ` (${offender.detail})` : ''
  const said = `${offender.file} ${texts.wrong(offender)}${detail}`
  if (!before) return [`${said}: ${texts.remedy}`]
  if (sizeOf(offender) <= sizeOf(before)) return []
  return [`${said}, and had ${before.size} when it was listed: ${texts.remedy}`]
}

function mended(texts: ListTexts, offender: Offender, now: Offender | undefined): string {
  const gone = now === undefined ? 'which is no longer so' : `which is now ${now.size}`
  return `${LISTS}/${texts.name}.txt lists "${lineOf(offender)}", ${gone}: the list may only shrink, run \`${SHRINK}\``
}

/** The list without what is mended. Nothing is added and no number raised, whatever was found. */
export function shrink(listed: readonly Offender[], found: readonly Offender[]): Offender[] {
  const now = byKey(found)
  return listed.flatMap((offender) => {
    const left = now.get(keyOf(offender))
    if (!left) return []
    return [isBetter(offender, left) ? { ...offender, size: left.size } : offender]
  })
}

/** The list with the new names of files that were moved. */
export function rename(listed: readonly Offender[], moved: ReadonlyMap<string, string>): Offender[] {
  const to = (name: string) => moved.get(name) ?? name
  return listed.map((o) => ({ ...o, file: to(o.file), ...(o.what !== undefined && { what: to(o.what) }) }))
}

const isBetter = (listed: Offender, now: Offender | undefined) => !now || sizeOf(now) < sizeOf(listed)
const sizeOf = (offender: Offender) => offender.size ?? 1
const keyOf = ({ file, what = '' }: Offender) => `${file} ${what}`
const byKey = (offenders: readonly Offender[]) => new Map(offenders.map((o) => [keyOf(o), o]))
const lineOf = ({ file, size, what }: Offender) => [file, size, what].filter((part) => part !== undefined).join(' ')
const byText = (a: string, b: string) => (a < b ? -1 : Number(a > b))
