const DIGEST = /^[0-9a-f]{64}$/
const CONTENT_KEY = /^sha256\/[0-9a-f]{2}\/([0-9a-f]{64})$/
const PART = /^[A-Za-z0-9][A-Za-z0-9._-]*$/
const MAX_KEY_LENGTH = 512

/** The key of content by its SHA-256 in hex: `sha256/ab/abcdef…`. */
export function contentKey(digest: string): string {
  if (!DIGEST.test(digest)) throw new TypeError(`\`${digest}\` is not a SHA-256 in hex`)
  return `sha256/${digest.slice(0, 2)}/${digest}`
}

/** The digest that the content under the key must have, or undefined when the key does not name one. */
export function digestOfKey(key: string): string | undefined {
  const digest = CONTENT_KEY.exec(key)?.[1]
  return digest !== undefined && key === contentKey(digest) ? digest : undefined
}

/** Keys become paths in some stores, so nothing may pass that means anything in a path. */
export function checkKey(key: string): void {
  const safe = key.length <= MAX_KEY_LENGTH && key.split('/').every((part) => PART.test(part))
  if (!safe)
    throw new TypeError(
      `object key ${JSON.stringify(key.slice(0, 80))} must be letters, digits and . _ - between single slashes`,
    )
}
