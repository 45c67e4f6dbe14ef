import { z } from 'zod'
import { didYouMean } from '../did-you-mean.ts'

/** An object that refuses unknown keys and names the known one that was probably meant. */
export function strict<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  const known = Object.keys(shape)
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return undefined
      const key = issue.keys[0] ?? ''
      return `unknown key \`${key}\`${didYouMean(key, known) || `: known here are ${known.map((k) => `\`${k}\``).join(', ')}`}`
    },
  })
}

/** Words for the plain cases, given to `safeParse`; a schema's own words come first. */
export const plainMessages: z.core.$ZodErrorMap = (issue) => {
  if (issue.code === 'invalid_type') {
    return issue.input === undefined ? 'is required' : `must be ${withArticle(issue.expected)}`
  }
  if (issue.code === 'invalid_value')
    return `must be ${issue.values.map((value) => JSON.stringify(value)).join(' or ')}`
  if (issue.code === 'too_small') return `must be at least ${issue.minimum}${unitOf(issue.origin)}`
  if (issue.code === 'too_big') return `must be at most ${issue.maximum}${unitOf(issue.origin)}`
  return undefined
}

function withArticle(type: string): string {
  if (type === 'int') return 'a whole number'
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`
}

function unitOf(origin: string): string {
  if (origin === 'string') return ' characters long'
  return origin === 'array' ? ' long' : ''
}

export type PlainIssue = { path: PropertyKey[]; message: string }

/**
 * The first thing wrong, told for a person. A union hides what is wrong inside its branches, so the branch whose
 * outer type fits speaks for it.
 */
export function firstIssue(error: z.core.$ZodError): PlainIssue {
  const issue = error.issues[0]
  return issue ? plain(issue) : { path: [], message: 'is not valid' }
}

function plain(issue: z.core.$ZodIssue): PlainIssue {
  if (issue.code === 'unrecognized_keys') return { path: [...issue.path, issue.keys[0] ?? ''], message: issue.message }
  if (issue.code !== 'invalid_union') return { path: issue.path, message: issue.message }
  const branch = issue.errors.find((issues) => issues.length > 0 && issues.every(isInside))?.[0]
  if (branch === undefined) return { path: issue.path, message: issue.message }
  const inner = plain(branch)
  return { path: [...issue.path, ...inner.path], message: inner.message }
}

function isInside(issue: z.core.$ZodIssue): boolean {
  return issue.path.length > 0 || issue.code !== 'invalid_type'
}
