/** What looks like a credential in any text, whoever wrote it there. */
const CREDENTIALS: readonly [what: RegExp, instead: string][] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g, '[private key]'],
  [/\bwl[a-z]?_[A-Za-z0-9_-]{8,}/g, '[credential]'],
  // A JSON Web Token, such as those that the agent signs and those that runs are given.
  [/\beyJ[\w-]{4,}\.[\w-]+\.[\w-]*/g, '[token]'],
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{8,}/gi, '$1 [credential]'],
  [/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@:]+(:[^\s/@]*)?@/gi, '$1[credential]@'],
  [/("(?:d|token|password|secret|apiKey|privateKey)"\s*:\s*)"[^"]*"/gi, '$1"[masked]"'],
]

/** A text that goes to somebody else. */
export function masked(text: string): string {
  return CREDENTIALS.reduce((before, [what, instead]) => before.replace(what, instead), text)
}
