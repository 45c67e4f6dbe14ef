/** Lines around a change that are shown with it. */
const AROUND = 3

interface Line {
  readonly sign: ' ' | '-' | '+'
  readonly text: string
}

/** The lines that differ, `-` as they were and `+` as they are, with what stands around them. */
export function differing(before: string, after: string): string {
  const all = compared(before.split('\n'), after.split('\n'))
  const isNear = all.map((_, n) => all.slice(Math.max(0, n - AROUND), n + AROUND + 1).some(({ sign }) => sign !== ' '))
  const shown = all.flatMap(({ sign, text }, n) => {
    if (isNear[n]) return [`${sign}${text}`]
    return isNear[n - 1] ? ['@@'] : []
  })
  return `${shown.join('\n')}\n`
}

/** The longest common sequence of lines stays, the rest goes or comes. */
function compared(before: readonly string[], after: readonly string[]): Line[] {
  const common = lengths(before, after)
  const lines: Line[] = []
  let [b, a] = [0, 0]
  while (b < before.length || a < after.length) {
    if (b < before.length && a < after.length && before[b] === after[a]) {
      lines.push({ sign: ' ', text: before[b]! })
      b++
      a++
    } else if (a === after.length || (b < before.length && common[b + 1]![a]! >= common[b]![a + 1]!)) {
      lines.push({ sign: '-', text: before[b++]! })
    } else {
      lines.push({ sign: '+', text: after[a++]! })
    }
  }
  return lines
}

/** `[b][a]`: how many lines the rests from b and from a on have in common. */
function lengths(before: readonly string[], after: readonly string[]): number[][] {
  const table = Array.from({ length: before.length + 1 }, () => Array.from({ length: after.length + 1 }, () => 0))
  for (let b = before.length - 1; b >= 0; b--) {
    for (let a = after.length - 1; a >= 0; a--) {
      const [down, right] = [table[b + 1]![a]!, table[b]![a + 1]!]
      table[b]![a] = before[b] === after[a] ? table[b + 1]![a + 1]! + 1 : Math.max(down, right)
    }
  }
  return table
}
