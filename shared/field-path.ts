/** Callers choose the names: one of 60 MB was answered twice, as 130 MB. */
const MOST_NAME_CHARS = 200

/**
 * A path as people write it: `packages[3].name`, `labels["my key"]`. The root is the empty string. Of a name of more
 * than 200 characters it has the beginning, with `…` behind it.
 */
export function fieldPath(segments: readonly PropertyKey[]): string {
  let path = ''
  for (const segment of segments) {
    const name = shortened(String(segment))
    if (typeof segment === 'number') path += `[${segment}]`
    else if (/^[A-Za-z_$][\w$]*$/.test(name)) path += path === '' ? name : `.${name}`
    else path += `[${JSON.stringify(name)}]`
  }
  return path
}

function shortened(name: string): string {
  return name.length > MOST_NAME_CHARS ? `${name.slice(0, MOST_NAME_CHARS)}…` : name
}
