// The types of the client, printed from the operation table: no schema library is needed to read them.
import { FAULTS } from '@windlass/shared/errors.ts'
import { Channel, OrgEvent, RunEvent } from '@windlass/shared/model/event.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { AnyOp } from '@windlass/shared/ops/op.ts'
import { z } from 'zod'
import { docText, fieldsText, typeText } from './type-text.ts'
import type { Schema } from './type-text.ts'

/** Declarations by name: the client, the nouns in what it takes and answers, and the codes of errors. */
export function clientTypes(): Map<string, string> {
  const nouns = new Map<string, string>()
  const groups = Object.entries(callerGroups()).map(([name, rows]) => {
    const calls = Object.entries(rows).map(([call, row]) => callText(call, row, nouns))
    return `readonly ${name}: {\n${calls.join('')}}\n`
  })
  for (const noun of [RunEvent, OrgEvent]) schemaOf(noun, 'output', nouns)
  const client = `export interface Client extends Follows {\n${groups.join('')}}\n`
  return new Map([
    ['Client', `/** One function for each operation of the service. */\n${client}`],
    ['Channel', `export type Channel = ${typeText(schemaOf(Channel, 'output', nouns))}\n`],
    ['FaultCode', faultCodes()],
    ...nouns,
  ])
}

/** The groups that a caller may use, as the client has them. */
export function callerGroups(): Record<string, Record<string, AnyOp>> {
  const { runnerSurface: _, hooks: __, ...groups } = ops
  return groups
}

function callText(name: string, row: AnyOp, nouns: Map<string, string>): string {
  const input = schemaOf(row.input, 'input', nouns)
  // The client knows the org.
  const needed = (input.required ?? []).filter((field) => field !== 'org')
  const fields = fieldsText(input, ['org'])
  const args = fields === '' ? 'Record<string, never>' : `{\n${fields}}`
  const mark = needed.length > 0 ? '' : '?'
  const answer = answerText(row, nouns)
  return `${docText(row.summary)}${name}(args${mark}: ${args}, options?: CallOptions): Promise<${answer}>\n`
}

function answerText(row: AnyOp, nouns: Map<string, string>): string {
  if (row.wire !== undefined) return 'Response'
  return row.success === 204 ? 'void' : typeText(schemaOf(row.output, 'output', nouns))
}

/** The schema, with the nouns in it printed into `nouns`. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output', nouns: Map<string, string>): Schema {
  const { $defs = {}, ...own } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Schema
  for (const [name, noun] of Object.entries($defs)) {
    const text = nounText(name, noun)
    const known = nouns.get(name)
    if (known !== undefined && known !== text) throw new Error(`${name} is one thing in an input, another in an output`)
    nouns.set(name, text)
  }
  return own
}

function nounText(name: string, noun: Schema): string {
  const doc = docText(noun.description)
  if (noun.properties) return `${doc}export interface ${name} {\n${fieldsText(noun)}}\n`
  return `${doc}export type ${name} = ${typeText(noun)}\n`
}

function faultCodes(): string {
  const codes = Object.keys(FAULTS).map((code) => JSON.stringify(code))
  return `/** What the service refuses with. */\nexport type FaultCode = ${codes.join(' | ')}\n`
}
