/** A place in the spool: a numbered file and a byte in it. */
export interface Position {
  segment: number
  offset: number
}

export function isBefore(one: Position, other: Position): boolean {
  return one.segment < other.segment || (one.segment === other.segment && one.offset < other.offset)
}

export function later(one: Position, other: Position): Position {
  return isBefore(one, other) ? other : one
}
