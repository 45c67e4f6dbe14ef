import assert from 'node:assert/strict'
import { keyOf } from '../../../run/spool/held.ts'
import type { Program, UploadWorld } from './world.ts'

/** Each text has come once and in order, and nothing behind the end; at the end all of them. */
export function assertOrder(world: UploadWorld, program: Program, isWhole: boolean): void {
  const key = keyOf(program.run, program.epoch)
  const texts = world.db.texts(key)
  let at = 0
  for (const text of texts.filter((each) => each !== 'END')) {
    if (typeof text === 'number') at += text
    else assert.equal(text, program.said[at++], `${key}: in order`)
  }
  const ends = texts.filter((text) => text === 'END').length
  assert.ok(ends === 0 || (ends === 1 && texts.at(-1) === 'END'), `${key}: one end, at the end`)
  assert.ok(world.kind.isThrottled || !texts.some((text) => typeof text === 'number'), `${key}: nothing left out`)
  if (isWhole) assert.ok(isDone(world, program), `${key}: ${texts.length} texts of ${program.said.length}`)
}

export function isDone(world: UploadWorld, program: Program): boolean {
  const held = world.held(program)
  // Of what the database has lost nothing is left here.
  if (program.isDropped || (program.risks.has('database') && !held)) return true
  const texts = world.db.texts(keyOf(program.run, program.epoch))
  if (program.isGivenUp) return texts.at(-1) === 'END'
  // What was left out last is said with the next entry.
  const count = texts.reduce<number>((sum, text) => sum + (typeof text === 'number' ? text : 1), held?.gap?.events ?? 0)
  return count >= program.said.length
}

/** All that is not acknowledged stands in the files. */
export function assertInFiles({ spool, files, ...world }: UploadWorld): void {
  if (!files.areThere) return
  for (const held of spool.held()) {
    const key = keyOf(held.run, held.epoch)
    if (world.placements.get(key)?.risks.has('file')) continue
    const entries = files.entriesOf(key)
    for (let n = held.acked + 1; n <= held.written; n++) assert.ok(entries.has(n), `${key}: ${n} is in no file`)
  }
}

/** Takes out what is over. */
export function sweep(world: UploadWorld): void {
  for (const [key, program] of world.placements) {
    if (!program.isEnded || world.held(program)) continue
    assertOrder(world, program, true)
    world.placements.delete(key)
  }
}
