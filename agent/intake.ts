import type { IntakeWord } from '@windlass/shared/wire/agent.ts'

/** Whether this agent asks for work, and who said that it should not. */
export interface Intake {
  /** What the coordinator said last; open until it has said something. */
  readonly word: IntakeWord
  /** It is being stopped, and asks for nothing any more. */
  readonly isLeaving: boolean
  /** True: it may ask for work. */
  isOpen(): boolean
  /** An older epoch than the one that is known says nothing. */
  heard(word: IntakeWord): void
  leave(): void
  /** Told after each change. */
  onChange(listener: () => void): void
}

const OPEN: IntakeWord = { state: 'open', epoch: -1, reason: '', deadlineAt: null }

export function createIntake(): Intake {
  let word = OPEN
  let isLeaving = false
  const listeners: (() => void)[] = []
  const changed = () => {
    for (const listener of listeners) listener()
  }
  return {
    get word() {
      return word
    },
    get isLeaving() {
      return isLeaving
    },
    isOpen: () => !isLeaving && word.state === 'open',
    heard(next) {
      if (next.epoch < word.epoch) return
      const isNews = next.epoch > word.epoch || next.state !== word.state
      word = next
      if (isNews) changed()
    },
    leave() {
      if (isLeaving) return
      isLeaving = true
      changed()
    },
    onChange: (listener) => void listeners.push(listener),
  }
}
