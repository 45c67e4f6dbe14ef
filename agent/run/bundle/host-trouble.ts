/** What a host answers when it has too little of something, or when its files are not as they should be. */
const OF_FILES = 'ENOSPC EDQUOT EROFS EIO EFBIG ESTALE EACCES EPERM ENOENT ENOTDIR ELOOP ENAMETOOLONG'
const OF_PROCESSES = 'EMFILE ENFILE ENOMEM EAGAIN'
const CODES = new Set(`${OF_FILES} ${OF_PROCESSES}`.split(' '))

/** Whether this machine, and neither the run nor the service, is why something failed. */
export function isHostTrouble(error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause) {
    const { code, syscall } = each as NodeJS.ErrnoException
    // A name that cannot be resolved is the network's business, though it is called ENOENT or EAGAIN at times.
    if (code !== undefined && CODES.has(code) && syscall !== 'getaddrinfo' && syscall !== 'connect') return true
  }
  return false
}
