-- breaking
-- Coordinators of the previous version sign run tokens with a key that the database keeps, and know no other.

-- Each coordinator signs with keys of its own, whose private half never leaves its memory. The rows tell the others by
-- what to check: one that reads the database, or a copy of it, can sign nothing.
alter table signing_keys
  add column kid         text,
  add column public_jwk  jsonb,
  add column expires_at  timestamptz;

-- Running programs hold tokens signed with the previous key. They live 10 minutes, and are renewed with a new key.
update signing_keys set kid = '', public_jwk = private_jwk - 'd', expires_at = now() + interval '15 minutes';

alter table signing_keys
  drop constraint signing_keys_pkey,
  drop column private_jwk,
  alter column kid set not null,
  alter column public_jwk set not null,
  alter column expires_at set not null,
  add primary key (purpose, kid);
