/** What the process answers to its shell. Documented in `windlass help`; scripts rely on it. */
export const EXIT = {
  ok: 0,
  /** The run failed, or the service did. */
  failed: 1,
  /** The command or what it was given is wrong. */
  usage: 2,
  /** The run was cancelled. */
  cancelled: 3,
  /** No such thing, or no right to it. */
  refused: 4,
  /** No answer, or not in time. */
  unreachable: 5,
  /** What was waited for is off: somebody else has decided otherwise meanwhile. */
  superseded: 6,
  /** The answer could not be written, as on a full disk; `EX_IOERR` of sysexits.h. */
  unwritten: 74,
  /** The deadline of a drain passed and the machine is not empty; as `timeout` of coreutils has it. */
  deadline: 124,
  /** Ctrl-C, as shells count it. */
  interrupted: 130,
  /** The reader of standard output left before the command was over; as shells count SIGPIPE. */
  unread: 141,
} as const

export const EXIT_TEXT = `Exit codes: 0 done, or the run completed · 1 the run or the service failed · 2 wrong usage or input ·
3 the run was cancelled · 4 not found or not allowed · 5 unreachable or timed out · 6 somebody changed it meanwhile ·
74 the answer could not be written · 124 the deadline of a drain passed · 130 interrupted ·
141 the reader of standard output left before the end`
