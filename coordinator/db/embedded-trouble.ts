/** Turns what PostgreSQL says when it cannot start into what a person can do about it. */
import type { Ending } from './embedded-process.ts'
import type { Layout } from './embedded-layout.ts'

const ADVICE: [RegExp, string][] = [
  [/No space left on device/, 'The disk (or /dev/shm) is full: make room and start again.'],
  [
    /could not look up effective user ID/,
    'The user this process runs as has no entry in /etc/passwd, and PostgreSQL needs one: add it, or run as a user that has one.',
  ],
  [
    /error while loading shared libraries|cannot open shared object/,
    'A library of the PostgreSQL package is missing: run `npm ci` again.',
  ],
  [
    /invalid permissions|wrong ownership/,
    "The data folder must belong to the server's user with mode 0700: set it so with chown and chmod.",
  ],
  [
    /could not access directory|Permission denied/,
    "The server's user may not read or write a file it needs: check who owns the folder named below.",
  ],
  [
    /Cannot allocate memory|could not map anonymous shared memory/,
    'The machine has too little free memory for PostgreSQL (about 200 MB).',
  ],
  [
    /could not create shared memory segment|could not create semaphores/,
    "The system's limits for shared memory or semaphores are used up (`ipcs`): free some, or raise kernel.shmmni and kernel.sem.",
  ],
  [
    /is not a valid data directory|invalid checkpoint record|could not locate a valid checkpoint/,
    'The data folder is damaged: restore it from a backup, or set WINDLASS_HOME to a new folder.',
  ],
]

export function startFailure(
  tail: string,
  layout: Layout,
  ending: Ending | undefined,
  failure: Error | undefined,
): Error {
  const how = failure ? `could not be executed (${failure.message})` : `ended with ${describe(ending)}`
  return new Error(
    `PostgreSQL ${how}. ${advice(tail)}\nThe end of ${layout.logFile}:\n${tail || '(nothing was written)'}`,
    { cause: failure },
  )
}

export function initFailure(output: string, layout: Layout, failure: Error): Error {
  return new Error(
    `The database in ${layout.root} could not be created. ${advice(output)}\n${failure.message}\n${output}`,
    { cause: failure },
  )
}

function describe(ending: Ending | undefined): string {
  return ending?.signal ? `signal ${ending.signal}` : `exit code ${ending?.code}`
}

function advice(output: string): string {
  return (
    ADVICE.find(([pattern]) => pattern.test(output))?.[1] ??
    'The lines below say why; WINDLASS_DATABASE_URL uses a PostgreSQL of your own instead.'
  )
}
