-- Orgs: who may do what, what programs are given, what they are.

-- Ids are text with a type prefix that sorts by creation. Their collation is the order of bytes, whatever the
-- database's own is: linguistic comparison would cost several times as much on every index of a hot table.
create domain id as text collate "C";

-- Tenants. Everything else belongs to one of them.
create table orgs (
  id          id primary key,
  slug        text collate "C" not null unique,
  name        text not null,
  created_at  timestamptz not null default now()
);

-- Credentials of people and scripts. A key itself is shown once and stored nowhere.
create table api_keys (
  id            id primary key,
  org_id        id not null references orgs,
  -- SHA-256 of the whole key.
  hash          bytea not null unique,
  prefix        text not null,
  name          text not null,
  role          text not null check (role in ('viewer', 'member', 'admin', 'owner')),
  scopes        text[] not null default '{}',
  created_at    timestamptz not null default now(),
  created_by    text,
  expires_at    timestamptz,
  revoked_at    timestamptz,
  revoked_by    text,
  last_used_at  timestamptz
);
create index api_keys_by_org on api_keys (org_id, id);

-- Sessions that an operator creates on the coordinator's host. They may do what keys may not.
create table operator_sessions (
  id          id primary key,
  org_id      id not null references orgs,
  -- SHA-256 of the whole token.
  hash        bytea not null unique,
  name        text not null,
  role        text not null check (role in ('viewer', 'member', 'admin', 'owner')),
  created_at  timestamptz not null default now(),
  expires_at  timestamptz not null,
  revoked_at  timestamptz
);

-- Public keys of the coordinators. Each signs with keys whose private half never leaves its memory: a copy of the
-- database can check a run token, and sign none.
create table signing_keys (
  purpose     text not null,
  kid         text not null,
  public_jwk  jsonb not null,
  created_at  timestamptz not null default now(),
  expires_at  timestamptz not null,
  primary key (purpose, kid)
);

-- The table of rate-limiter-flexible: blocks of requests that coordinators have taken in a window. A crash of the
-- database empties it, which costs one window.
create unlogged table rate_limits (
  key     varchar(255) primary key,
  points  integer not null default 0,
  expire  bigint
);

-- Every change that a person, a key or an operator made. Append-only.
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
create index audit_log_by_actor on audit_log (org_id, actor_id, id);
-- Operations are found by their group, which stands before the dot; there are few in one.
create index audit_log_by_group on audit_log (org_id, split_part(action, '.', 1), id);

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'the table % is append-only', tg_table_name using errcode = 'insufficient_privilege';
end $$;
create trigger audit_log_is_append_only before update or delete on audit_log
  for each row execute function refuse_change();
create trigger audit_log_is_not_truncated before truncate on audit_log
  for each statement execute function refuse_change();

-- Environments, such as staging and production: each has variables of its own.
create table environments (
  id          id primary key,
  org_id      id not null references orgs,
  name        text collate "C" not null,
  created_at  timestamptz not null default now(),
  unique (org_id, name)
);

-- One value of the org itself ('' as its environment), or of one of its environments. A name is a variable or a secret
-- there, never both. A secret's value is sealed; see coordinator/environments/sealing.ts.
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

-- Names and values of one org or environment at one time, each text stored once.
create table variable_texts (
  id       bigint generated always as identity primary key,
  org_id   id not null references orgs,
  digest   bytea not null,
  bytes    int not null,
  -- Null as a value: the environment has a secret of this name, which hides a variable of the org.
  content  json not null,
  -- When a set or a head was last given it.
  used_at  timestamptz not null default now(),
  unique (org_id, digest)
);

-- What runs of an environment are given: the text of the org, and that of the environment. A set never changes, since a
-- run keeps the one of its first start.
create table variable_sets (
  id          bigint generated always as identity primary key,
  org_id      id not null references orgs,
  base_id     bigint not null references variable_texts,
  own_id      bigint not null references variable_texts,
  -- When the last head left it. It goes when no unfinished run keeps it; see coordinator/environments/store-sets.ts.
  retired_at  timestamptz
);
create index variable_sets_of_org on variable_sets (org_id, retired_at);
create index variable_sets_retired on variable_sets (retired_at) where retired_at is not null;
create index variable_sets_by_texts on variable_sets (base_id, own_id);
create index variable_sets_by_own on variable_sets (own_id);

-- The set that new runs of an org and environment are given, and whether there are secrets. A claim reads it.
create table variable_heads (
  org_id       id not null references orgs,
  environment  text collate "C" not null,
  set_id       bigint not null references variable_sets,
  text_id      bigint not null references variable_texts,
  has_secrets  boolean not null,
  primary key (org_id, environment)
);
create index variable_heads_by_set on variable_heads (set_id);
create index variable_heads_by_text on variable_heads (text_id);

-- Workflows, by the slug that deploys and triggers name.
create table workflows (
  id           id primary key,
  org_id       id not null references orgs,
  slug         text collate "C" not null,
  name         text not null,
  description  text not null default '',
  version      int not null,
  created_at   timestamptz not null default now(),
  updated_at   timestamptz not null default now(),
  deleted_at   timestamptz
);
create unique index workflows_by_slug on workflows (org_id, slug) where deleted_at is null;
create index workflows_by_org on workflows (org_id, id);

-- What was deployed. A version never changes; a run keeps the one that it was created with.
create table workflow_versions (
  id             id primary key,
  org_id         id not null references orgs,
  workflow_id    id not null references workflows,
  version        int not null,
  descriptor     json not null,
  -- Each run is shown with it: to parse the descriptor for it took 12 µs, half of what reading a run takes.
  budget         json generated always as (descriptor -> 'budget') stored,
  -- json, not jsonb: people read these, and jsonb would put their keys in another order.
  input_schema   json not null,
  output_schema  json not null,
  warnings       text[] not null default '{}',
  bundle_digest  text not null,
  bundle_bytes   int not null,
  source_digest  text not null,
  created_by     text not null,
  created_at     timestamptz not null default now(),
  unique (workflow_id, version)
);
