import { z } from 'zod'
import { EnvironmentId, EnvironmentRef, Slug } from '../ids.ts'

const At = z.int().meta({ description: 'Milliseconds since the Unix epoch.' })

/** A named set of variables and secrets over those of the org. */
export const Environment = z
  .object({ id: EnvironmentId, org: Slug, name: Slug, createdAt: At })
  .meta({ id: 'Environment' })
export type Environment = z.output<typeof Environment>

/** Whose: that of one environment, or that of the org, which all of its environments inherit. */
export const Of = EnvironmentRef.optional().meta({
  description: 'Name or id of an environment; left out: the org itself.',
})

/** What the program's runtime and the system under it need of the process environment. */
const RESERVED =
  /^(WINDLASS_.*|NODE_.*|npm_.*|LD_.*|DYLD_.*|PATH|HOME|PWD|OLDPWD|SHELL|SHLVL|USER|LOGNAME|TMPDIR|TMP|TEMP|TZ|LANG|LC_.*|IFS|ENV|BASH_ENV|SSL_CERT_FILE|SSL_CERT_DIR|OPENSSL_.*|UV_.*|_|__proto__|constructor|prototype)$/i

/** Name of a variable or secret, as the process environment of a run carries it. */
export const VariableName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be letters, digits and `_`, not begin with a digit, at most 128')
  .refine((name) => !RESERVED.test(name), 'is a name that the runtime of programs needs for itself; take another')
  .meta({
    description: 'Letters, digits and `_`. Names that the runtime needs (PATH, NODE_…, WINDLASS_…) are refused.',
  })

/** An environment variable ends at the first NUL, and Linux takes 128 KiB for one with its name. */
const VALUE_BYTES = 64 * 1024

function valueSchema(least: number) {
  return z
    .string()
    .min(least)
    .refine((value) => !value.includes('\0'), 'holds U+0000, which no environment variable can; leave it out')
    .refine((value) => value.isWellFormed(), 'holds half of a surrogate pair; it must be text')
    .refine((value) => new TextEncoder().encode(value).length <= VALUE_BYTES, 'must be at most 64 KiB of UTF-8')
}

export const VariableValue = valueSchema(0)
export const SecretValue = valueSchema(1).meta({ description: 'Never shown again; at most 64 KiB.' })

export const Variable = z
  .object({
    name: z.string(),
    value: z.string(),
    environment: z.string().nullable().meta({ description: 'Null: of the org, for all of its environments.' }),
    updatedAt: At,
    updatedBy: z.string(),
  })
  .meta({ id: 'Variable' })
export type Variable = z.output<typeof Variable>

/** Everything of a secret but its value, which nobody reads over the API. */
export const SecretName = z
  .object({ name: z.string(), environment: z.string().nullable(), updatedAt: At, updatedBy: z.string() })
  .meta({ id: 'SecretName' })
export type SecretName = z.output<typeof SecretName>
