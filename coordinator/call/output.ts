import { JsonText } from '../api/call.ts'
import type { Plan } from './plan.ts'

/** What a handler of a JSON row returned, as JSON text. In tests it has to fit the row's schema. */
export function outputText(plan: Plan, value: unknown, strict: boolean): string {
  const text = value instanceof JsonText ? value.text : JSON.stringify(value)
  if (text === undefined) throw new Error(`${plan.row.id} returned nothing that JSON can show`)
  if (strict) assertFits(plan, text)
  return text
}

function assertFits({ row }: Plan, text: string): void {
  const result = row.output.safeParse(JSON.parse(text))
  if (!result.success) throw new Error(`${row.id} returned what its row does not promise: ${result.error.message}`)
}
