/** What a run needs of the runner that takes it. */
export interface Needs {
  /** That it occupies while it executes. */
  slots: number
  /** Sorted. */
  labels: string[]
}

/** As it stands in the queue: `''` for one slot and no label, else `4|gpu,zone:eu`. Runs with the same text wait in one line. */
export function needsText({ slots, labels }: Needs): string {
  if (slots === 1 && labels.length === 0) return ''
  return `${slots}|${labels.toSorted().join(',')}`
}

export function readNeeds(text: string): Needs {
  if (text === '') return { slots: 1, labels: [] }
  const [slots = '1', labels = ''] = text.split('|')
  return { slots: Number(slots), labels: labels === '' ? [] : labels.split(',') }
}
