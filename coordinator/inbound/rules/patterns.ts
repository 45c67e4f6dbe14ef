/**
 * Whether a pattern of a descriptor means an event: its own name and everything beneath it. `*` stands for any part.
 * `pull_request` and `pull_request.*` are the same.
 */
export function matchesEvent(pattern: string, event: string | null): boolean {
  if (pattern === '*') return true
  if (event === null) return false
  const own = pattern.endsWith('.*') ? pattern.slice(0, -2) : pattern
  return matchesGlob(own, event) || matchesGlob(`${own}.*`, event)
}

/** With `*` for any characters, in as many steps as the two are long: nobody's pattern takes long. */
export function matchesGlob(pattern: string, text: string): boolean {
  let [p, t] = [0, 0]
  /** Where the last `*` stands, and how much of the text it has been given. */
  let star = -1
  let given = 0
  while (t < text.length) {
    if (pattern[p] === '*') {
      star = p++
      given = t
    } else if (pattern[p] === text[t]) {
      p++
      t++
    } else if (star !== -1) {
      p = star + 1
      t = ++given
    } else return false
  }
  while (pattern[p] === '*') p++
  return p === pattern.length
}
