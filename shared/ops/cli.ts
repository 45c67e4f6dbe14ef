/**
 * How the command of a row is typed, and what a terminal shows of its answer. All of it is text with fields in braces:
 * `{run.id} is {run.status}`. A path begins at the answer, else at what was typed, and leads through lists as well:
 * `{matches.runId}`. `{scopes|all}` says `all` where there are none. A line is left out where a field of it is empty.
 *
 * What ends in `At` is shown as a time, in `Ms` as a length, in `Bytes` or `Mb` as a size, a schema in the words of
 * TypeScript. Where the name does not tell, a format does: `{from:time}`, or `json` for all of a value.
 */
export interface Cli {
  /** Fields of the body that are arguments rather than flags, behind those of the path, each with its words of help. */
  readonly args?: Readonly<Record<string, string>>
  /** Below the flags in the help, in place of the example that is made of the row. */
  readonly help?: readonly string[]
  readonly table?: Table
  /**
   * A line for each field of one thing, by its label: `pool.name`, or a text with several. `settings.*` is a line for
   * each member of an object or list.
   */
  readonly fields?: Readonly<Record<string, string>>
  /** Lines of standard output. */
  readonly print?: readonly string[]
  /** The field that is printed as JSON; without this and the three above it is the whole answer. */
  readonly json?: string
  /** Lines of standard error, such as what to type next. Left out as well where a field is 0. */
  readonly note?: readonly string[]
}

/** How a terminal shows the answer of a list: a line for each item. */
export interface Table {
  /**
   * The field of an item by the head of its column: `settings.isolation` lies deeper. `CREATED?` is a column that a
   * narrow terminal does without, the last ones first. A pipe gets all of them in this order, without heads: a new one
   * goes last.
   */
  readonly columns: Readonly<Record<string, string>>
  /** Said where there are no items. */
  readonly none?: string
}
