// A bundle of its own, loaded when a program first waits: those that never do start as if there were no journal.
export { createEngine } from './engine.ts'
