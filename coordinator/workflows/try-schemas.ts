import type { OrgId } from '@windlass/shared/ids.ts'
import type { Judge } from '../judging/judge.ts'
import { schemaOf } from '../judging/schema.ts'
import type { BuiltWorkflow } from './build.ts'
import { tooLarge } from './deploy-error.ts'

/** A schema by which nothing can be judged would fail every run; better now, and to the one who can mend it. */
export async function trySchemas(
  { judge }: { judge: Judge },
  org: OrgId,
  { descriptor, inputSchema, outputSchema }: BuiltWorkflow,
): Promise<void> {
  const { entry } = descriptor
  for (const [what, given] of [
    ['the input type', inputSchema],
    ['the return type', outputSchema],
  ] as const) {
    const verdict = await judge.tryOut(schemaOf('derived', given), { org })
    if (verdict.is === 'fits') continue
    throw tooLarge(what, verdict.invalid.message, { path: `files/${entry}`, file: entry })
  }
}
