import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'

/**
 * Writes what the kernel asks at each system call of a program, by which those of keyrings are refused. Keyrings lie in
 * no folder and outlive all processes. A program could leave something in those of its user, or in the one that all
 * programs have from their agent, for the next run, and would find there the keys of whoever has started the agent.
 * Undefined where we do not know the numbers of the calls.
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
 * How the kernel names each kind of program that these execute, and what is the first and the last number of add_key,
 * request_key and keyctl there (<asm/unistd.h>). 32-bit programs have numbers of their own.
 */
const KINDS = [
  { audit: 0xc000003e, first: 248, last: 250 }, // x86_64
  { audit: 0x40000003, first: 286, last: 288 }, // i386
  { audit: 0xc00000b7, first: 217, last: 219 }, // aarch64
  { audit: 0x40000028, first: 309, last: 311 }, // arm
]
/** From here on stand the numbers of x32, a third kind, which says that it is x86_64. Nobody needs it. */
const X32 = 0x40000000

// <linux/bpf_common.h>, <linux/seccomp.h>
const [LOAD, IF_EQUAL, IF_GREATER, IF_AT_LEAST, RETURN] = [0x20, 0x15, 0x25, 0x35, 0x06]
const [NUMBER_AT, KIND_AT] = [0, 4]
const [ALLOW, REFUSE] = [0x7fff0000, 0x00050001]
const STEPS_OF_KIND = 5

function instructions(): Buffer[] {
  const refuse = 1 + KINDS.length * STEPS_OF_KIND
  const allow = refuse + 1
  const kinds = KINDS.flatMap(({ audit, first, last }, index) => {
    const at = 1 + index * STEPS_OF_KIND
    const to = (target: number, step: number) => target - (at + step) - 1
    return [
      instruction(IF_EQUAL, audit, 0, STEPS_OF_KIND - 1),
      instruction(LOAD, NUMBER_AT),
      instruction(IF_AT_LEAST, X32, to(refuse, 2), 0),
      instruction(IF_GREATER, last, to(allow, 3), 0),
      instruction(IF_AT_LEAST, first, to(refuse, 4), to(allow, 4)),
    ]
  })
  // A kind that is none of these comes to the refusal.
  return [instruction(LOAD, KIND_AT), ...kinds, instruction(RETURN, REFUSE), instruction(RETURN, ALLOW)]
}

/** struct sock_filter: where it goes on says how many are skipped. */
function instruction(code: number, value: number, ifTrue = 0, ifFalse = 0): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeUInt16LE(code, 0)
  bytes.writeUInt8(ifTrue, 2)
  bytes.writeUInt8(ifFalse, 3)
  bytes.writeUInt32LE(value, 4)
  return bytes
}
