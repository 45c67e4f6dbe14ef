import { Failure } from './failure.ts'

/** An http or https address without the slashes at its end, so that two forms of one address compare equal. */
export function checkedUrl(url: string): string {
  const parsed = URL.parse(url)
  if (parsed && (parsed.username || parsed.password))
    throw new Failure(
      'The address holds a user name or password, which Windlass does not use.',
      'leave them out of the address; the key goes to --api-key, WINDLASS_API_KEY or a profile',
    )
  if (parsed && /^https?:$/.test(parsed.protocol)) return url.replace(/\/+$/, '')
  throw new Failure(
    `\`${url}\` is not an http or https address.`,
    'give --url or WINDLASS_URL such as http://127.0.0.1:8787',
  )
}
