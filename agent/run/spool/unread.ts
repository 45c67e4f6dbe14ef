import { AgentRefusal, EXIT } from '../../exit-codes.ts'

/** A file of the spool that could not be read, and why. */
export interface Unread {
  file: string
  error: Error
}

/** With the way out. Moved away, it is gone, and so are the words in it. */
export function unreadableText({ file, error }: Unread): string {
  const what = `${file} cannot be read (${codeOf(error)})`
  return `${what}: mend that, or move the file away; runs with words in it that were not told yet begin anew then.`
}

/** A start without what stands there would end programs that live on. Another start may be able to. */
export function unreadableAtStart(unread: Unread): AgentRefusal {
  return new AgentRefusal(EXIT.internal, unreadableText(unread), { cause: unread.error })
}

export function codeOf(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? error.message
}
