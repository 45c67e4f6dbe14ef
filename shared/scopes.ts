import { z } from 'zod'

/** From least to most; a higher role may do all that a lower one may. */
export const ROLES = ['viewer', 'member', 'admin', 'owner'] as const
export const Role = z.enum(ROLES)
export type Role = z.output<typeof Role>

export const SCOPES = [
  'workflow:read',
  'workflow:create',
  'workflow:update',
  'workflow:delete',
  'workflow:trigger',
  'workflow_version:read',
  'workflow_version:create',
  'run:read',
  'run:trigger',
  'run:cancel',
  'run:delete',
  'inference:invoke',
  'audit_log:read',
  'billing:read',
] as const
export const Scope = z.enum(SCOPES)
export type Scope = z.output<typeof Scope>

export function hasRole(role: Role, least: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(least)
}
