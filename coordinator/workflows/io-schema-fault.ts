/** A type that JSON cannot carry, with the path where it sits: `output.counts`. */
export class NotJson extends Error {
  override readonly name = 'NotJson'
  readonly at: string

  constructor(at: string, reason: string) {
    super(`\`${at}\` ${reason}`)
    this.at = at
  }
}
