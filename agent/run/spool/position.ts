/** A place in the spool: a numbered file and a byte in it. */
export interface Position {
  segment: number
  offset: number
}
