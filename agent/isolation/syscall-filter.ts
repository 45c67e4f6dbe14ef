import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'

/**
 * Writes what the kernel asks at each system call of a program, by which two kinds of them are refused. Undefined where
 * we do not know the numbers of the calls.
 *
 * Keyrings lie in no folder and outlive all processes. A program could leave something in those of its user, or in the
 * one that all programs have from their agent, for the next run, and would find there the keys of whoever has started
 * the agent.
 *
 * A lease on a file makes whoever opens it wait, for 45 s by default, and so does a delegation. A program with its
 * agent's user may have one on every file of the agent that it sees, also where it may not write, and all that start
 * with those would wait.
 */
export function writeFilter(folder: string): string | undefined {
  if (!FILTERED.includes(process.arch)) return undefined
  const file = path.join(folder, 'syscall-filter')
  writeFileSync(file, Buffer.concat(instructions()))
  chmodSync(file, 0o644)
  return file
}

/** Bubblewrap is tried with it; for the rest, this says whether the kernel has such a thing at all. */
export const takesFilters = () => existsSync('/proc/sys/kernel/seccomp/actions_avail')

/** Of Node's names. Both have the bytes of a number in the same order. */
const FILTERED = ['x64', 'arm64']

/**
 * How the kernel names each kind of program that these execute, what is the first and the last number of add_key,
 * request_key and keyctl there, and the numbers of fcntl (<asm/unistd.h>). 32-bit programs have numbers of their own.
 */
const KINDS = [
  { audit: 0xc000003e, first: 248, last: 250, fcntl: [72] }, // x86_64
  { audit: 0x40000003, first: 286, last: 288, fcntl: [55, 221] }, // i386
  { audit: 0xc00000b7, first: 217, last: 219, fcntl: [25] }, // aarch64
  { audit: 0x40000028, first: 309, last: 311, fcntl: [55, 221] }, // arm
]
/** From here on stand the numbers of x32, a third kind, which says that it is x86_64. Nobody needs it. */
const X32 = 0x40000000
/** What fcntl is asked for (<linux/fcntl.h>). */
const SET_LEASE = 1024
/** Linux 6.19. */
const SET_DELEGATION = 1040

// <linux/bpf_common.h>, <linux/seccomp.h>
const [LOAD, IF_EQUAL, IF_GREATER, IF_AT_LEAST, RETURN] = [0x20, 0x15, 0x25, 0x35, 0x06]
/** The second argument: its lower half, which is all that fcntl takes of it. */
const [NUMBER_AT, KIND_AT, ARGUMENT_AT] = [0, 4, 24]
const [ALLOW, REFUSE] = [0x7fff0000, 0x00050001]

/** Goes on where the label stands, or else at the next step. Only forward: the kernel takes nothing else. */
interface Step {
  label?: string
  code: number
  value: number
  ifTrue?: string
  ifFalse?: string
}

const STEPS: Step[] = [
  { code: LOAD, value: KIND_AT },
  ...KINDS.flatMap(({ audit, first, last, fcntl }, index): Step[] => [
    { label: `kind ${index}`, code: IF_EQUAL, value: audit, ifFalse: `kind ${index + 1}` },
    { code: LOAD, value: NUMBER_AT },
    { code: IF_AT_LEAST, value: X32, ifTrue: 'refuse' },
    ...fcntl.map((number) => ({ code: IF_EQUAL, value: number, ifTrue: 'lease' })),
    { code: IF_GREATER, value: last, ifTrue: 'allow' },
    { code: IF_AT_LEAST, value: first, ifTrue: 'refuse', ifFalse: 'allow' },
  ]),
  // None of these kinds.
  { label: `kind ${KINDS.length}`, code: RETURN, value: REFUSE },
  { label: 'lease', code: LOAD, value: ARGUMENT_AT },
  { code: IF_EQUAL, value: SET_LEASE, ifTrue: 'refuse' },
  { code: IF_EQUAL, value: SET_DELEGATION, ifTrue: 'refuse', ifFalse: 'allow' },
  { label: 'refuse', code: RETURN, value: REFUSE },
  { label: 'allow', code: RETURN, value: ALLOW },
]

/** Each a struct sock_filter: where it goes on says how many are skipped. */
function instructions(): Buffer[] {
  const skipped = (at: number, label?: string) =>
    label === undefined ? 0 : STEPS.findIndex((step) => step.label === label) - at - 1
  return STEPS.map(({ code, value, ifTrue, ifFalse }, at) => {
    const bytes = Buffer.alloc(8)
    bytes.writeUInt16LE(code, 0)
    bytes.writeUInt8(skipped(at, ifTrue), 2)
    bytes.writeUInt8(skipped(at, ifFalse), 3)
    bytes.writeUInt32LE(value, 4)
    return bytes
  })
}
