/** So many at a time, first come, first served. */
export interface Turns {
  /** Resolves when it is one's turn; who is through calls the answer. */
  take(): Promise<() => void>
}

export function createTurns(most: number): Turns {
  let taken = 0
  const waiting: (() => void)[] = []

  const pass = () => {
    const next = waiting.shift()
    if (next) next()
    else taken -= 1
  }

  return {
    async take() {
      if (taken < most) taken += 1
      else await new Promise<void>((resolve) => waiting.push(resolve))
      return pass
    },
  }
}
