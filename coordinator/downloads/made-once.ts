const RETRY_MS = 30_000
const TRIES = 2

interface Making<T> {
  make: () => Promise<T>
  /** Somebody who tidies up may have removed it. */
  isThere: (made: T) => Promise<boolean>
  tell: (error: unknown) => void
}

/** Something that is made when it is first asked for, once for all who ask, and again when it is gone. */
export function madeOnce<T>({ make, isThere, tell }: Making<T>): () => Promise<T> {
  let making: Promise<T> | undefined

  /** What has failed stays so for a while: anybody may ask, and each try takes all of a processor. */
  function begin(): Promise<T> {
    const current = make()
    current.catch((error: unknown) => {
      tell(error)
      setTimeout(() => (making = undefined), RETRY_MS).unref()
    })
    return current
  }

  async function made(tries = TRIES): Promise<T> {
    const current = (making ??= begin())
    const found = await current
    if (await isThere(found)) return found
    if (making === current) making = undefined
    if (tries > 1) return made(tries - 1)
    const error = new Error('what is made for download vanishes as soon as it is there')
    tell(error)
    throw error
  }

  return () => made()
}
