/** How a program ended, as its agent reports it. An ending is a value, because every ending is reported. */
export type Ending =
  | { how: 'returned'; outputText: string }
  | {
      how: 'threw'
      error: { name: string; message: string; stack?: string; code?: string; detail?: Record<string, unknown> }
    }
  | { how: 'exited'; exitCode: number }
  | { how: 'killed'; signal: string }
  | { how: 'timed-out'; timeoutMs: number }
  | { how: 'cancelled'; forced: boolean }
  | { how: 'lost'; reason: string }
