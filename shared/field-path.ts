/** A path as people write it: `packages[3].name`, `labels["my key"]`. The root is the empty string. */
export function fieldPath(segments: readonly PropertyKey[]): string {
  let path = ''
  for (const segment of segments) {
    if (typeof segment === 'number') path += `[${segment}]`
    else if (/^[A-Za-z_$][\w$]*$/.test(String(segment))) path += path === '' ? String(segment) : `.${String(segment)}`
    else path += `[${JSON.stringify(String(segment))}]`
  }
  return path
}
