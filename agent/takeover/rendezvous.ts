import { chmodSync, chownSync, closeSync, constants, mkdirSync, openSync, readdirSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import path from 'node:path'
import { makePipes, readPipe, writePipe } from '../os/named-pipes.ts'

/** The agent's ends of the two pipes over which a program is taken back. */
export interface Lines {
  frames: Socket
  messages: Socket
  /** The program is at its ends, or will never be: from now on an end of the pipes is an end of the program. */
  settle(): void
}

/** The program may have found them by then: it could keep us waiting. */
type During = <T>(files: readonly string[], act: () => T) => T

const { O_RDWR, O_NONBLOCK } = constants

/**
 * Makes what the program waits for: two named pipes, and then the file that says they are there. Each pipe is opened at both ends
 * first, so that neither side sees an end before the other has come. Others than those of an agent before: in these may lie what that
 * one has not read.
 */
export async function openRendezvous(folder: string, owner: number | undefined, during: During): Promise<Lines> {
  mkdirSync(folder, { recursive: true })
  // The program looks into it as the user that it is, and writes nothing there.
  chmodSync(folder, 0o755)
  const number = 1 + Math.max(0, ...readdirSync(folder).map((name) => Number(name.split('.')[1])))
  const frames = path.join(folder, `frames.${number}`)
  const messages = path.join(folder, `messages.${number}`)
  await makePipes([frames, messages])
  if (owner !== undefined) for (const file of [frames, messages]) chownSync(file, owner, owner)
  const pipes = [frames, messages]
  const both: number[] = []
  const lines = during(pipes, () => {
    both.push(openSync(frames, O_RDWR | O_NONBLOCK), openSync(messages, O_RDWR | O_NONBLOCK))
    return { frames: readPipe(frames), messages: writePipe(messages) }
  })
  writeFileSync(path.join(folder, `ready.${number}`), '')
  const close = () => both.splice(0).forEach((fd) => closeSync(fd))
  return { ...lines, settle: () => (both.length > 0 ? during(pipes, close) : undefined) }
}
