import { Fault } from '@windlass/shared/errors.ts'

/**
 * Where the fault lies: a field of the request, a key of the descriptor, or `files/` and a file's path (`paths/` where
 * the path itself is at fault), and the place in a file where there is one. Lines and columns count from 1.
 */
export type DeployErrorDetail = {
  path: string
  file?: string
  line?: number
  column?: number
  /** Everything that is wrong, when the tool that refused said more than one thing. */
  problems?: DeployProblem[]
  /** Of what is too large. */
  bytes?: number
  limitBytes?: number
}

export type DeployProblem = { message: string; file?: string; line?: number; column?: number }

/** A workflow that cannot be deployed as it is: the customer's to mend, told with the place and the way out. */
export class DeployError extends Error {
  override readonly name = 'DeployError'
  readonly detail: DeployErrorDetail

  constructor(message: string, detail: DeployErrorDetail) {
    super(message)
    this.detail = detail
  }
}

/** The same in terms of what was sent: `files[2].content`, or `changes` where a file that stays is at fault. */
export function faultOf({ message, detail }: DeployError, sent: Sent): Fault {
  const [, kind, name] = /^(files|paths)\/(.*)$/s.exec(detail.path) ?? []
  const code = detail.limitBytes === undefined ? 'VALIDATION_FAILED' : 'PAYLOAD_TOO_LARGE'
  if (kind === undefined) return new Fault(code, { ...detail }, message)
  const list = sent.files ? 'files' : 'changes'
  const at = (sent.files ?? sent.changes ?? []).findLastIndex((file) => file.path === name)
  const path = at === -1 ? list : `${list}[${at}].${kind === 'files' ? 'content' : 'path'}`
  return new Fault(code, { ...detail, path }, message)
}

interface Sent {
  files?: readonly { path: string }[] | undefined
  changes?: readonly { path: string }[] | undefined
}

/** Of a type of `run` by whose schema nothing can be judged. */
export function tooLarge(what: string, why: string, detail: DeployErrorDetail & { file: string }): DeployError {
  const fix = 'give it fewer parts, or `unknown` where nothing has to be checked'
  return new DeployError(`${what} of \`run\` in ${detail.file} is too large to be checked: ${why}: ${fix}`, detail)
}
