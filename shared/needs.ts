/** What a verb or loop needs that calls these: the intersection of their first parameters. */
export type Needs<Verb> = (
  Verb extends (needs: infer Own, ...rest: never[]) => unknown ? (needs: Own) => void : never
) extends (needs: infer All) => void
  ? All
  : never
