/** In all messages of a request. An `initialize` has twenty, a call of a tool ten. */
const MOST_PARTS = 4000
/** Of all names and texts together. */
const MOST_CHARS = 256 * 1024

/**
 * Whether messages have so many names and items of lists that the library, which holds each of them against its
 * schemas, would stop everybody else for seconds; or so long names and texts, which it repeats in what it answers. It
 * does not look into the values of `arguments`, where the input of a run may stand.
 */
export function hasTooManyParts(messages: readonly unknown[]): boolean {
  let left = MOST_PARTS
  let leftChars = MOST_CHARS

  const fitsText = (text: string) => (leftChars -= text.length) >= 0
  const fits = (value: unknown): boolean => {
    if (typeof value === 'string') return fitsText(value)
    if (Array.isArray(value)) return value.every((item) => --left >= 0 && fits(item))
    return !isObject(value) || fitsBy(value, (name) => fits(value[name]))
  }
  const fitsBy = (value: object, fitsWithin: (name: string) => boolean): boolean => {
    for (const name in value) if (--left < 0 || !fitsText(name) || !fitsWithin(name)) return false
    return true
  }
  const fitsParams = (params: unknown) => {
    if (!isObject(params)) return fits(params)
    return fitsBy(params, (name) => {
      const inner = params[name]
      return name === 'arguments' && isObject(inner) ? fitsBy(inner, () => true) : fits(inner)
    })
  }
  const fitsMessage = (message: unknown) => {
    if (!isObject(message)) return fits(message)
    return fitsBy(message, (name) => (name === 'params' ? fitsParams(message[name]) : fits(message[name])))
  }
  return !messages.every(fitsMessage)
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
