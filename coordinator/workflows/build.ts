import type { Descriptor } from '@windlass/shared/model/descriptor.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'
import { type Packed, pack } from '../bundles/pack.ts'
import type { Config } from '../config.ts'
import { type BytesInFlight, createBytesInFlight } from '../limits/bytes-in-flight.ts'
import { DEFAULT_SIZES } from '../sizes.ts'
import { type Compiler, createCompiler } from './compile.ts'
import type { DeployProblem } from './deploy-error.ts'
import { dubious } from './dubious.ts'
import { effectless } from './effectless.ts'
import type { JsonSchema } from './json-schema.ts'
import { checkSourceFiles } from './source-files.ts'
import { refuseUnstorable } from './storable.ts'

const MAX_WARNINGS = 20
const MAX_WARNING_CHARS = 1000

export type BuiltWorkflow = {
  descriptor: Descriptor
  /** What an agent executes: `main.mjs` and its source map. */
  bundle: Packed
  /** The files as they were sent. */
  source: Packed
  inputSchema: JsonSchema
  outputSchema: JsonSchema
  /** What a person should know, though nothing of it stands in the way. */
  warnings: DeployProblem[]
}

export type WorkflowBuilder = {
  /** Files in, everything a version consists of out. Throws a DeployError for what the customer has to mend. */
  build(org: string, files: readonly SourceFile[]): Promise<BuiltWorkflow>
  close(): Promise<void>
}

export interface BuilderParts {
  compiler?: Compiler
  /** Limits the bytes of all files that are being built. */
  inFlight: BytesInFlight
  /** Of all files of a deploy together; 50 MiB unless given. */
  mostBytes?: number
}

/** Files being built have a limit of their own: over MCP a build may outlive its request. */
export function openDeploys(
  config: Pick<Config, 'maxBundleBytes' | 'maxDeploysBytes' | 'maxOrgDeploysBytes'>,
  log: Log,
) {
  const limits = { org: config.maxOrgDeploysBytes, all: config.maxDeploysBytes }
  const builder = createWorkflowBuilder({
    compiler: createCompiler({ log }),
    inFlight: createBytesInFlight(limits),
    mostBytes: config.maxBundleBytes,
  })
  return { builder, bodies: createBytesInFlight(limits, { what: 'Requests' }) }
}

/** Nothing of the customer's code is executed here: it is parsed, bundled and type-checked. */
export function createWorkflowBuilder({
  compiler = createCompiler(),
  inFlight,
  mostBytes = DEFAULT_SIZES.maxBundleBytes,
}: BuilderParts): WorkflowBuilder {
  return {
    async build(org, files) {
      checkSourceFiles(files, mostBytes)
      const holding = inFlight.hold(org)
      try {
        for (const { content } of files) holding.take(Buffer.byteLength(content))
        return await built(compiler, org, files)
      } finally {
        holding.release()
      }
    },
    close: () => compiler.close(),
  }
}

async function built(compiler: Compiler, org: string, files: readonly SourceFile[]): Promise<BuiltWorkflow> {
  const { descriptor, bundle: bundled, schemas } = await compiler.compile(org, files)
  const [bundle, source] = await Promise.all([pack(bundled.files), pack(files)])
  for (const schema of [schemas.inputSchema, schemas.outputSchema]) refuseUnstorable(schema, descriptor.entry)
  // The bundler's come last: the packages of others may have enough of them to fill the list.
  const warnings = [...effectless(descriptor), ...dubious(descriptor), ...schemas.warnings, ...bundled.warnings]
  return { descriptor, bundle, source, ...schemas, warnings: firstOf(warnings) }
}

/** Each version keeps its warnings for good, and a generated file may give one for each of its lines. */
function firstOf(warnings: readonly DeployProblem[]): DeployProblem[] {
  const first = warnings.slice(0, MAX_WARNINGS).map((warning) => ({ ...warning, message: shortened(warning.message) }))
  if (first.length === warnings.length) return first
  return [
    ...first,
    { message: `there are at least ${warnings.length} warnings; only the first ${MAX_WARNINGS} are kept` },
  ]
}

/** A message may quote a name of any length. */
function shortened(message: string): string {
  return message.length > MAX_WARNING_CHARS ? `${message.slice(0, MAX_WARNING_CHARS).toWellFormed()}…` : message
}
