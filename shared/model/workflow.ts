import { z } from 'zod'
import { Slug, VersionId, WorkflowId } from '../ids.ts'

/** The most that any coordinator may be set to take as the files of one deploy. */
export const MOST_BUNDLE_BYTES = 64 * 1024 * 1024

export const SourceFile = z
  .strictObject({
    path: z.string().min(1).max(512).meta({ description: 'Relative, with `/`, as in `lib/parse.ts`.' }),
    content: z.string(),
  })
  .meta({ id: 'SourceFile' })
export type SourceFile = z.output<typeof SourceFile>

export const FileChange = z
  .strictObject({
    path: SourceFile.shape.path,
    content: z.string().nullable().meta({ description: 'Its text from now on, as a whole; null takes the file away.' }),
  })
  .meta({ id: 'FileChange' })
export type FileChange = z.output<typeof FileChange>

const JsonSchema = z.record(z.string(), z.unknown()).meta({ description: 'JSON Schema, draft 2020-12.' })

export const Workflow = z
  .object({
    id: WorkflowId,
    org: Slug,
    slug: Slug,
    name: z.string(),
    description: z.string(),
    version: z.int().meta({ description: 'The version that a trigger runs.' }),
    pool: Slug,
    process: z.enum(['fresh', 'reuse']),
    createdAt: z.int(),
    updatedAt: z.int(),
    disabledAt: z.int().nullable().meta({ description: 'Since when no run of it starts; null: it is enabled.' }),
    disabledBy: z.string().nullable().meta({ description: 'Id of the key or session that disabled it.' }),
    deletedAt: z.int().nullable().meta({ description: 'When it was deleted; null: it is not.' }),
    purgeAt: z.int().nullable().meta({ description: 'Until when one that is deleted can be restored.' }),
  })
  .meta({ id: 'Workflow' })
export type Workflow = z.output<typeof Workflow>

export const WorkflowVersion = z
  .object({
    id: VersionId,
    workflow: z.object({ id: WorkflowId, slug: Slug }),
    version: z.int(),
    descriptor: z.record(z.string(), z.unknown()),
    inputSchema: JsonSchema,
    outputSchema: JsonSchema,
    bundleDigest: z.string(),
    bundleBytes: z.int(),
    warnings: z.array(z.string()),
    createdAt: z.int(),
    createdBy: z.string(),
  })
  .meta({ id: 'WorkflowVersion' })
export type WorkflowVersion = z.output<typeof WorkflowVersion>
