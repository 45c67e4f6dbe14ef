import own from './package.json' with { type: 'json' }

/** The version that the agent tells the coordinator. */
export const VERSION = own.version
