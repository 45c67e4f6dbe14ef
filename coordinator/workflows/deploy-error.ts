/** Where the fault lies: `path` in the request's own terms, and the place in a file where there is one. Lines and columns count from 1. */
export type DeployErrorDetail = {
  path: string
  file?: string
  line?: number
  column?: number
  /** Everything that is wrong, when the tool that refused said more than one thing. */
  problems?: DeployProblem[]
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

/** Of a type of `run` by whose schema nothing can be judged. */
export function tooLarge(what: string, why: string, detail: DeployErrorDetail & { file: string }): DeployError {
  const fix = 'give it fewer parts, or `unknown` where nothing has to be checked'
  return new DeployError(`${what} of \`run\` in ${detail.file} is too large to be checked: ${why}: ${fix}`, detail)
}
