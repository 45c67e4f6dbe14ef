/**
 * Gives whatever differs from run to run a name that does not: an id, a moment, a secret. It goes by the shape of the
 * value, so that a field of another name, another order, another status or another sentence is still seen.
 */
export class Names {
  readonly #given = new Map<string, string>()
  readonly #counts = new Map<string, number>()
  readonly #known: readonly (readonly [text: string, name: string])[]

  /** `known`: texts of this machine, such as an address or a folder, with their names. */
  constructor(known: readonly (readonly [text: string, name: string])[] = []) {
    this.#known = known.toSorted(([a], [b]) => b.length - a.length)
  }

  /** `<run 1>`: the first of its kind that appeared. */
  of(kind: string, text: string): string {
    const known = this.#given.get(text)
    if (known !== undefined) return known
    const count = (this.#counts.get(kind) ?? 0) + 1
    this.#counts.set(kind, count)
    const name = `<${kind} ${count}>`
    this.#given.set(text, name)
    return name
  }

  text(text: string): string {
    const named = this.#known.reduce((all, [from, to]) => all.replaceAll(from, to), text)
    return SHAPES.reduce(
      (all, [shape, kind]) => all.replace(shape, (found) => (typeof kind === 'string' ? kind : kind(this, found))),
      named,
    )
  }

  #string(text: string, key: string): string {
    if (key === 'isolation' && text.includes(',')) return '<isolation>'
    return OF_MACHINE[key] ?? this.text(text)
  }

  /** The same value with names in it. A moment is known by its size: 2020 to 2100 in milliseconds. */
  value(value: unknown, key = ''): unknown {
    if (typeof value === 'string') return this.#string(value, key)
    if (typeof value === 'number') return numberOf(key, value)
    if (Array.isArray(value)) return value.map((each) => this.value(each, key))
    if (typeof value !== 'object' || value === null) return value
    // What is in force on a machine, field by field.
    if (key === 'isolation') return Object.fromEntries(Object.keys(value).map((name) => [name, `<${name}>`]))
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [this.text(name), this.value(each, name)]))
  }
}

/** Texts that depend on the machine as a whole. */
const OF_MACHINE: Readonly<Record<string, string>> = {
  nextCursor: '<cursor>',
  platform: '<platform>',
  tz: '<zone data>',
}

/**
 * What of a run was measured, or depends on the machine. A field under another name shows its figure, and is seen so.
 */
const MEASURED: Readonly<Record<string, string>> = {
  computeMs: '<ms>',
  retryAfterMs: '<ms>',
  bundleBytes: '<bytes>',
  uptimeMs: '<ms>',
  // Version of the frames between agent and coordinator, which nobody else speaks.
  protocol: '<protocol>',
}

const isMoment = (value: number) => value > Date.UTC(2020) && value < Date.UTC(2100)

function numberOf(key: string, value: number): number | string {
  return isMoment(value) ? '<time>' : (MEASURED[key] ?? value)
}

const KINDS: Readonly<Record<string, string>> = {
  wf: 'workflow',
  ver: 'version',
  rnr: 'runner',
  rtok: 'registration token',
  ses: 'session',
  env: 'environment',
  inp: 'question',
  aud: 'entry',
}

/** Replaced in this order: an id may hold what looks like a digest, and a secret what looks like an id. */
const SHAPES: readonly (readonly [RegExp, string | ((names: Names, text: string) => string)])[] = [
  [/\bwl[sr]?_[0-9A-Za-z]{46}\b/g, (names, text) => names.of(SECRETS[text.slice(0, 3)]!, text)],
  [/\bwls?_[0-9A-Za-z]{6,7}(?![0-9A-Za-z])/g, '<first letters>'],
  // Each answer has another one: a number would change with every act before it.
  [/\breq_[0-9a-z]{26}\b/g, '<request>'],
  [
    /\b(run|wf|ver|pool|rnr|rtok|org|key|ses|env|inp|aud)_[0-9a-hjkmnp-tv-z]{26}\b/g,
    (names, text) => names.of(kindOf(text), text),
  ],
  [/\b20\d\d-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(\.\d+)?Z?/g, '<time>'],
  [/\b\d\d:\d\d:\d\d\.\d{3}\b/g, '<clock>'],
  [/\b(1[6-9]|[23]\d)\d{11}\b/g, '<time>'],
  [/\b(sha256:)?[0-9a-f]{64}\b/g, (names, text) => names.of('digest', text)],
  // Frames within Node, which depend on its version.
  [/at [^\n"]*\(node:[^)]*\)/g, 'at <node>'],
  [/(?<=\bcursor=)[\w-]{20,}/g, '<cursor>'],
  [/\bpid \d+\b/g, 'pid <n>'],
]

const SECRETS: Readonly<Record<string, string>> = { wl_: 'key secret', wls: 'session secret', wlr: 'join token' }

function kindOf(id: string): string {
  const prefix = id.slice(0, id.indexOf('_'))
  return KINDS[prefix] ?? prefix
}
