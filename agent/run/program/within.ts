/** The value, or undefined when it takes too long. */
export async function within<T>(ms: number, value: Promise<T>): Promise<T | undefined> {
  const timeout = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => timeout.resolve(undefined), ms)
  try {
    return await Promise.race([value, timeout.promise])
  } finally {
    clearTimeout(timer)
  }
}

function isWithin(ms: number, promise: Promise<unknown>): Promise<boolean> {
  return within(
    ms,
    promise.then(() => true),
  ).then((is) => is === true)
}

/** Waits some time, and again as long as it is only slow. */
export async function untilRead(
  read: Promise<void>,
  { eachMs, mostMs, isSlow }: { eachMs: number; mostMs: number; isSlow: () => boolean },
): Promise<void> {
  const deadline = performance.now() + mostMs
  while (!(await isWithin(eachMs, read)) && isSlow() && performance.now() < deadline);
}
