/** Each of its characters takes six bytes of JSON. */
export function run() {
  const error = new Error('\u0001'.repeat(20_000))
  error.stack = '\u0001'.repeat(50_000)
  error.name = '\u0001'.repeat(500)
  throw Object.assign(error, { code: 'RUN_FAILED', detail: { text: '\u0001'.repeat(100_000) } })
}
