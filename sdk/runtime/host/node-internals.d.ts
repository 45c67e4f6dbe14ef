declare namespace NodeJS {
  interface Process {
    /** Ends the process without `exit` events. Not documented, and as old as Node. */
    reallyExit(code: number): never
    /** Names of what has been loaded of Node itself, such as `NativeModule child_process`. */
    readonly moduleLoadList: readonly string[]
    /** The class of handles of pipes, over which that of all handles is found. */
    binding(name: 'pipe_wrap'): { Pipe: new (type: number) => { close(): void } }
  }
}
