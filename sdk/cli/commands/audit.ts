import type { Command } from 'commander'
import type { AuditEntry } from '@windlass/shared/model/audit.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { groupCommand, rowArgs, rowCommand } from '../from-table.ts'
import { tellNextPage } from '../next-page.ts'
import { does } from '../session.ts'
import { note, paint, print, safe, timeText, wrapped } from '../terminal.ts'

const HELP = `
  windlass audit list --created-after 2d
  windlass audit list --action 'keys.*,secrets.*' --created-after 2026-11-01 --created-before 2026-11-08
  windlass audit list --target wf_… --json`

/** `audit list`: a line per change, when, who, what, to what, and what became of it. */
export function addAudit(program: Command): void {
  const command = rowCommand(groupCommand(program, 'audit'), 'list', ops.audit.list, HELP)
  does(command, async (session, positional, options) => {
    const answer = await session.client.audit.list(await rowArgs(ops.audit.list, positional, options))
    await session.answer(answer, () => {
      for (const entry of answer.auditEntries) print(entryLine(entry))
      if (answer.auditEntries.length === 0)
        note('No changes. `--created-after 30d` looks further back, without it to the beginning.')
      tellNextPage(answer.nextCursor)
    })
  })
}

/** When, who, what, to what, and what became of it; on a terminal the latter on a line of its own. */
function entryLine(entry: AuditEntry): string {
  const { createdAt, actor, via, action, target } = entry
  const out = process.stdout
  const who = `${actor.name || actor.id} (${actor.kind}${via === 'rest' ? '' : `, ${via}`})`
  const head = [
    paint('dim', timeText(createdAt), out),
    safe(who, out),
    paint('bold', action, out),
    safe(nameOf(target), out),
  ]
  const id = target.name === null || target.name === target.id ? '' : target.id
  const more = [id, safe(changeText(entry), out)].filter((text) => text !== '').join('  ')
  if (more === '') return head.join('  ')
  return out.isTTY
    ? `${head.join('  ')}\n${paint('dim', wrapped(more, INDENT, out), out)}`
    : `${head.join('  ')}  ${more}`
}

// Below who did it.
const INDENT = ' '.repeat(21)

function nameOf({ id, name }: AuditEntry['target']): string {
  return name ?? id
}

function changeText({ before, after }: AuditEntry): string {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
  return names
    .map((name) => [name, valueText(name, before?.[name]), valueText(name, after?.[name])] as const)
    .filter(([, was, is]) => was !== is)
    .map(([name, was, is]) => (was === undefined ? `${name}: ${is}` : `${name}: ${was} → ${is ?? '-'}`))
    .join(', ')
}

const SHOWN = 60
/** A digest is recognised by its beginning. */
const DIGEST = /^[0-9a-f]{64}$/

function valueText(name: string, value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  if (name.endsWith('At') && typeof value === 'number') return timeText(value)
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  if (DIGEST.test(text)) return text.slice(0, 12)
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text
}
