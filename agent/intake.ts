import type { IntakeNotice } from '@windlass/shared/wire/agent.ts'

/** Whether this agent asks for work, and who said that it should not. */
export interface Intake {
  /** What the coordinator said last; open until it has said something. */
  readonly notice: IntakeNotice
  /** It is being stopped, and asks for nothing any more. */
  readonly isLeaving: boolean
  /** True: it may ask for work. */
  isOpen(): boolean
  /** An older epoch than the one that is known says nothing. */
  heard(notice: IntakeNotice): void
  leave(): void
  /** Told after each change. */
  onChange(listener: () => void): void
}

const OPEN: IntakeNotice = { state: 'open', epoch: -1, reason: '', deadlineAt: null }

export function createIntake(): Intake {
  let notice = OPEN
  let isLeaving = false
  const listeners: (() => void)[] = []
  const changed = () => {
    for (const listener of listeners) listener()
  }
  return {
    get notice() {
      return notice
    },
    get isLeaving() {
      return isLeaving
    },
    isOpen: () => !isLeaving && notice.state === 'open',
    heard(next) {
      if (next.epoch < notice.epoch) return
      const isNews = next.epoch > notice.epoch || next.state !== notice.state
      notice = next
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
