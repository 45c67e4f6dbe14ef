// Loaded before a program whose wall clock is to be wrong: CLOCK_SHIFT_MS is by how much. Monotonic clocks go on as they are.
const shift = Number(process.env.CLOCK_SHIFT_MS)
const Real = Date

class ShiftedDate extends Real {
  constructor(...args: unknown[]) {
    super(...((args.length === 0 ? [ShiftedDate.now()] : args) as [number]))
  }

  static override now(): number {
    return Real.now() + shift
  }
}
globalThis.Date = ShiftedDate as DateConstructor
