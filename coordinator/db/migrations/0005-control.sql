-- breaking
-- Coordinators of before would start runs without their variables, and write runs that lists do not find (0007).

alter table api_keys
  add column created_by text,
  add column revoked_by text;
create index api_keys_by_org on api_keys (org_id, id);

-- What an operator minted on the coordinator's host: opens what keys may not do. Hashes only, as with keys.
create table operator_sessions (
  id            id primary key,
  org_id        id not null references orgs,
  hash          bytea not null unique,
  name          text not null,
  role          text not null check (role in ('viewer', 'member', 'admin', 'owner')),
  created_at    timestamptz not null default now(),
  expires_at    timestamptz not null,
  revoked_at    timestamptz
);

create table environments (
  id          id primary key,
  org_id      id not null references orgs,
  name        text collate "C" not null,
  created_at  timestamptz not null default now(),
  unique (org_id, name)
);

-- One value of one scope: the org itself ('' as its environment's name), or one of its environments. A name is a variable or
-- a secret there, never both. A secret's value is sealed; see coordinator/environments/sealing.ts.
create table variables (
  org_id       id not null references orgs,
  environment  text collate "C" not null default '',
  name         text collate "C" not null,
  value        text,
  sealed       text,
  updated_at   timestamptz not null default now(),
  updated_by   text not null,
  primary key (org_id, environment, name),
  check ((value is null) <> (sealed is null))
);

-- What runs of an environment are given, with what it inherits. A set never changes: a run keeps the one of its first start.
create table variable_sets (
  id         bigint generated always as identity primary key,
  org_id     id not null references orgs,
  variables  json not null
);

-- The set of the moment, and whether there are secrets. One row an org and environment that has any; a claim reads it.
create table variable_heads (
  org_id       id not null references orgs,
  environment  text collate "C" not null,
  set_id       bigint not null references variable_sets,
  has_secrets  boolean not null,
  primary key (org_id, environment)
);

-- 0: it started when there were none. Null: it has not started.
alter table runs add column variable_set_id bigint;

-- Every change that a person, a key or an operator made.
create table audit_log (
  id           id primary key,
  org_id       id not null references orgs,
  at           timestamptz not null default now(),
  actor_kind   text not null check (actor_kind in ('key', 'session', 'token', 'operator', 'system')),
  actor_id     text not null,
  actor_name   text not null,
  via          text not null check (via in ('rest', 'mcp', 'runner', 'admin', 'system')),
  request_id   text,
  action       text not null,
  target_type  text not null,
  target_id    text not null,
  target_name  text,
  before       json,
  after        json
);
create index audit_log_by_org on audit_log (org_id, id);
create index audit_log_by_target on audit_log (org_id, target_id, id);

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'the table % is append-only', tg_table_name using errcode = 'insufficient_privilege';
end $$;
create trigger audit_log_is_append_only before update or delete on audit_log
  for each row execute function refuse_change();
create trigger audit_log_is_not_truncated before truncate on audit_log
  for each statement execute function refuse_change();

-- The store of rate-limiter-flexible: blocks of requests that coordinators have taken in a window. Lost with a crash of the
-- database, which costs nothing but one window.
create unlogged table rate_limits (
  key     varchar(255) primary key,
  points  integer not null default 0,
  expire  bigint
);
