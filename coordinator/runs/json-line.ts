/**
 * Text that a program calls JSON, on one line as event streams want it: line breaks can stand between values only, since
 * strings hold them escaped. Undefined when it is no JSON. It goes to readers as it came, so it is looked at once, here.
 */
export function jsonLine(text: string): string | undefined {
  try {
    JSON.parse(text)
  } catch {
    return undefined
  }
  return text.replace(/[\r\n]/g, ' ')
}
