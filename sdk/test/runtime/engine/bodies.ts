import { callsOn, type Calls } from './calls.ts'
import { execute, type End, type Tools } from './process.ts'
import { aWorld, type World } from './world.ts'

export type Body = (calls: Calls, tools: Tools) => Promise<unknown>

/** Until it is parked for the `parks`th time, or has ended. */
export async function until(parks: number, world: World, body: Body, replay = false): Promise<End> {
  let left = parks
  const evicts = () => {
    left -= 1
    return left === 0
  }
  return await execute({ program: (tools) => body(callsOn(tools), tools), world, replay, evicts })
}

/** Until there is such a thing, and its process is lost at once. */
export const lostOnce = (world: World, isThere: () => boolean, body: Body): Promise<End> =>
  execute({ program: (tools) => body(callsOn(tools), tools), world, replay: false, crashes: isThere })

export const resume = (world: World, body: Body) => until(0, world, body, true)

export const soonest = () => aWorld(({ n }) => n)
