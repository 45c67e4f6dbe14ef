/** How this coordinator is reached. */
export interface Address {
  /** WINDLASS_BASE_URL. */
  baseUrl: string | undefined
  /** As the caller has reached it. */
  base: string
}

const NOTE =
  'This is the address by which you have asked; others may not reach it. ' +
  'The setting WINDLASS_BASE_URL of the coordinator names the right one.'

export function addressOf({ baseUrl, base }: Address, path: string): { url: string; urlNote: string | null } {
  return { url: `${baseUrl ?? base}${path}`, urlNote: baseUrl === undefined ? NOTE : null }
}
