import type { IntakeNotice } from '@windlass/shared/wire/agent.ts'

/** Whether this agent asks for work, and who said that it should not. */
export interface Intake {
  /** What the coordinator said last; open until it has said something. */
  readonly notice: IntakeNotice
  /** It is being stopped, and asks for nothing any more. */
  readonly isLeaving: boolean
  /** True: it may ask for work. */
  isOpen(): boolean
  /**
   * A connection begins. What was said before holds until it brings a notice, of whatever epoch: a database that was
   * restored is back at a lower one.
   */
  connected(): void
  /** An older epoch than one that this connection has told says nothing: notices overtake each other. */
  heard(notice: IntakeNotice): void
  leave(): void
  /** Told after each change. */
  onChange(listener: () => void): void
}

const OPEN: IntakeNotice = { state: 'open', epoch: -1, reason: '', deadlineAt: null }

export function createIntake(): Intake {
  let notice = OPEN
  /** The latest of this connection. */
  let epoch = OPEN.epoch
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
    connected() {
      epoch = OPEN.epoch
    },
    heard(next) {
      if (next.epoch < epoch) return
      epoch = next.epoch
      const isNews = epoch !== notice.epoch || next.state !== notice.state
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
