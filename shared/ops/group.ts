/** What is said of a group as a whole, beside its rows. */
export interface Group {
  /** In the help of the command line. Without it the group has no commands of its own. */
  readonly command?: string
  /** The name by which its commands are typed: `windlass env list`. The long one serves as well. */
  readonly short?: string
  /** In OpenAPI and in the references. Without it none of its rows is documented. */
  readonly docs?: string
}
