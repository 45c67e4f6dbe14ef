/**
 * How much of all wants the rooms can take together, each want in any of the rooms that fit it: a maximum flow. What was put into a
 * room moves on to another one where that makes place for somebody who fits nowhere else.
 */
export function mostServed(
  wants: readonly number[],
  rooms: readonly number[],
  fits: (want: number, room: number) => number,
): number {
  const open = wants.map((_, want) => rooms.map((_, room) => fits(want, room)))
  const put = wants.map(() => rooms.map(() => 0))
  const left = [...rooms]
  let served = 0
  wants.forEach((amount, want) => {
    let rest = amount
    while (rest > 0) {
      const path = pathFrom(want, { open, put, left })
      if (!path) break
      rest -= flow(path, rest, { open, put, left })
    }
    served += amount - rest
  })
  return served
}

/**
 * At least so much of all wants has a place: the largest first, each in the rooms that fit it as they come. One look
 * at each pair, where the most takes as many as there are pairs.
 */
export function someServed(
  wants: readonly number[],
  rooms: readonly number[],
  fits: (want: number, room: number) => number,
): number {
  const left = [...rooms]
  let served = 0
  const largestFirst = [...wants.keys()].sort((a, b) => wants[b]! - wants[a]!)
  for (const want of largestFirst) {
    let rest = wants[want]!
    for (let room = 0; room < left.length && rest > 0; room++) {
      if (left[room] === 0) continue
      const taken = Math.min(rest, left[room]!, fits(want, room))
      left[room]! -= taken
      rest -= taken
    }
    served += wants[want]! - rest
  }
  return served
}

interface State {
  /** How much more of each want may go into each room. */
  open: number[][]
  /** How much of each want is in each room. */
  put: number[][]
  left: number[]
}

/** `want` goes into `room`; the next step moves somebody else out of that room. */
interface Step {
  want: number
  room: number
}

/** The shortest way from a want to a room with something left. */
function pathFrom(first: number, { open, put, left }: State): Step[] | undefined {
  const cameBy = new Map<number, Step>()
  const reached = new Map<number, number | undefined>([[first, undefined]])
  for (const want of reached.keys()) {
    for (let room = 0; room < left.length; room++) {
      if (cameBy.has(room) || open[want]![room]! <= 0) continue
      cameBy.set(room, { want, room })
      if (left[room]! > 0) return pathTo(room, { cameBy, reached })
      put.forEach((rooms, other) => {
        if (rooms[room]! > 0 && !reached.has(other)) reached.set(other, room)
      })
    }
  }
  return undefined
}

function pathTo(last: number, ways: { cameBy: Map<number, Step>; reached: Map<number, number | undefined> }): Step[] {
  const path: Step[] = []
  for (let room: number | undefined = last; room !== undefined; room = ways.reached.get(path[0]!.want))
    path.unshift(ways.cameBy.get(room)!)
  return path
}

/** Moves as much as the narrowest place lets through. */
function flow(path: readonly Step[], most: number, { open, put, left }: State): number {
  const last = path.at(-1)!.room
  const narrow = path.map(({ want, room }, at) => {
    const before = path[at - 1]
    return Math.min(open[want]![room]!, before ? put[want]![before.room]! : most)
  })
  const amount = Math.min(left[last]!, ...narrow)
  path.forEach(({ want, room }, at) => {
    const before = path[at - 1]
    open[want]![room]! -= amount
    put[want]![room]! += amount
    if (!before) return
    put[want]![before.room]! -= amount
    open[want]![before.room]! += amount
  })
  left[last]! -= amount
  return amount
}
