/** How a run stands in this process. */
export type State =
  /** The program is led to where its last process stood. */
  | 'replaying'
  /** It stands there, and only waits: the agent was told so, and nothing new has happened. */
  | 'resting'
  /** What the program does is new. */
  | 'live'
  /** Live, and nothing but waits was left: the agent was told so. */
  | 'parked'
  /** The run is to end: waits reject, steps are executed, and the journal is told of nothing. */
  | 'stopped'
  /** The program did something else than is recorded: it is given nothing, and a person decides. */
  | 'blocked'
  /** The program has ended: the process may serve another run. */
  | 'ended'

/** What changes the state. Where the table has no row for it, nothing happens. */
export type Event =
  /** All that is recorded has happened: what the program wants next is new. */
  | 'caughtUp'
  /** Nothing but waits is left. */
  | 'idle'
  /** Something is there that the program waits for. */
  | 'woken'
  | 'strayed'
  | 'stopped'
  | 'ended'

/** What the engine does on the way into the next state. */
export type Action =
  /** Tells the agent that what follows is new. */
  | 'sayLive'
  /** Makes the results ready that came during the replay. */
  | 'readyResults'
  /** Begins the calls that the replay held. */
  | 'beginHeld'
  /** Keeps the process although nothing of the program keeps it. */
  | 'hold'
  | 'letGo'
  /** Sends the calls that were to be sent soon; where the program has thrown, also what it was given. */
  | 'finish'
  /** Nothing more goes to the journal, and the timers of short sleeps stop. */
  | 'close'
  /** All waits reject, those of held calls included. */
  | 'rejectWaits'

type Row = readonly [to: State, ...actions: Action[]]

const GO_LIVE = ['sayLive', 'readyResults', 'beginHeld'] as const

const TABLE: Readonly<Record<State, Readonly<Partial<Record<Event, Row>>>>> = {
  replaying: {
    caughtUp: ['live', ...GO_LIVE],
    idle: ['resting', 'hold'],
    strayed: ['blocked', 'close', 'hold'],
    stopped: ['stopped', 'sayLive', 'close', 'rejectWaits'],
  },
  resting: {
    // Something that keeps no process has called: for the agent the program is parked all the same.
    caughtUp: ['parked', ...GO_LIVE],
    woken: ['live', 'letGo', ...GO_LIVE],
    stopped: ['stopped', 'sayLive', 'close', 'letGo', 'rejectWaits'],
    ended: ['ended', 'sayLive', 'finish', 'close', 'letGo'],
  },
  live: {
    idle: ['parked', 'hold'],
    stopped: ['stopped', 'close', 'rejectWaits'],
    ended: ['ended', 'finish', 'close'],
  },
  parked: {
    woken: ['live', 'letGo'],
    stopped: ['stopped', 'close', 'letGo', 'rejectWaits'],
    ended: ['ended', 'finish', 'close', 'letGo'],
  },
  stopped: {
    ended: ['ended'],
  },
  blocked: {},
  ended: {},
}

/** The state after an event, and what is done on the way, in this order. */
export function transition(state: State, event: Event): [to: State, actions: readonly Action[]] {
  const [to, ...actions] = TABLE[state][event] ?? [state]
  return [to, actions]
}

/** What the program is given and asks for is recorded. */
export const isReplay = (state: State) => state === 'replaying' || state === 'resting'

/** The agent was told that nothing but waits is left. */
export const isAtRest = (state: State) => state === 'resting' || state === 'parked'

/** Nothing is said to anybody, and nothing given to the program. */
export const isOver = (state: State) => state === 'blocked' || state === 'ended'

/** The journal is told of calls, and the program of their results. */
export const isOpen = (state: State) => state !== 'stopped' && !isOver(state)
