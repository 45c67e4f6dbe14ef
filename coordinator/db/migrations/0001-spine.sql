-- Ids are text with a type prefix that sorts by creation. Their collation is the order of bytes, whatever the database's
-- own is: linguistic comparison would cost several times as much on every index of a hot table.
create domain id as text collate "C";

create table orgs (
  id          id primary key,
  slug        text collate "C" not null unique,
  name        text not null,
  created_at  timestamptz not null default now()
);

create table api_keys (
  id            id primary key,
  org_id        id not null references orgs,
  -- SHA-256 of the whole key. The key itself is shown once and kept nowhere.
  hash          bytea not null unique,
  prefix        text not null,
  name          text not null,
  role          text not null check (role in ('viewer', 'member', 'admin', 'owner')),
  scopes        text[] not null default '{}',
  created_at    timestamptz not null default now(),
  expires_at    timestamptz,
  revoked_at    timestamptz,
  last_used_at  timestamptz
);

-- What this installation signs with. One row a purpose.
create table signing_keys (
  purpose      text primary key,
  private_jwk  jsonb not null,
  created_at   timestamptz not null default now()
);

create table runner_pools (
  id          id primary key,
  org_id      id not null references orgs,
  name        text collate "C" not null,
  created_at  timestamptz not null default now(),
  unique (org_id, name)
);

create table registration_tokens (
  id          id primary key,
  pool_id     id not null references runner_pools on delete cascade,
  hash        bytea not null unique,
  uses_left   int not null check (uses_left >= 0),
  created_by  text not null,
  created_at  timestamptz not null default now(),
  expires_at  timestamptz not null
);

create table runners (
  id                 id primary key,
  org_id             id not null references orgs,
  pool_id            id not null references runner_pools,
  name               text not null,
  public_key         jsonb not null,
  state              text not null default 'active' check (state in ('active', 'cordoned', 'draining', 'revoked')),
  labels             text[] not null default '{}',
  slots              int not null check (slots > 0),
  version            text not null,
  platform           text not null,
  created_at         timestamptz not null default now(),
  last_poll_at       timestamptz,
  last_heartbeat_at  timestamptz
);
create index runners_by_org on runners (org_id, id);

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

create table workflow_versions (
  id             id primary key,
  org_id         id not null references orgs,
  workflow_id    id not null references workflows,
  version        int not null,
  descriptor     json not null,
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

-- The durable record. One row is updated about five times in a run's life, never in an indexed column, and the free space
-- of a page takes the new version of the row (a HOT update): so the indexes are written once a run.
-- No foreign keys on the three hot tables: each would lock the same few parent rows in every insert.
create table runs (
  id                   id primary key,
  org_id               id not null,
  workflow_id          id not null,
  version_id           id not null,
  pool_id              id not null,
  status               text not null check (status in ('queued', 'pending', 'running', 'completed', 'failed', 'cancelling',
                         'cancelled', 'sleeping', 'awaiting_input', 'waiting_for_child')),
  attempt              int not null default 1,
  -- Raised by every placement. Whoever writes about a run names the epoch that he was given.
  epoch                int not null default 0,
  -- Number of the last event in the log, and of the last entry taken from the agent of this epoch.
  cursor               int not null default 0,
  seq                  int not null default 0,
  runner_id            id,
  trigger_kind         text not null,
  trigger_id           text,
  trigger_actor        text,
  environment          text,
  tags                 text[] not null default '{}',
  priority             smallint not null default 0,
  parent_run_id        id,
  root_run_id          id,
  retry_of             id,
  -- JSON as text: jsonb refuses strings with \u0000 and changes numbers and the order of keys.
  input                text not null,
  output               text,
  error                text,
  created_at           timestamptz not null default now(),
  queued_at            timestamptz not null default now(),
  claimed_at           timestamptz,
  started_at           timestamptz,
  finished_at          timestamptz,
  cancel_requested_at  timestamptz,
  cancel_reason        text,
  compute_ms           bigint not null default 0,
  tokens_input         bigint not null default 0,
  tokens_output        bigint not null default 0,
  tokens_cached        bigint not null default 0,
  tokens_reasoning     bigint not null default 0,
  cost_micros          bigint not null default 0,
  constraint finished_exactly_when_final
    check ((finished_at is not null) = (status in ('completed', 'failed', 'cancelled'))),
  constraint failed_says_why check ((error is not null) = (status = 'failed'))
) with (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
create index runs_by_org on runs (org_id, id);
create index runs_by_workflow on runs (workflow_id, id);

-- Only what may be claimed now. Rows live for milliseconds, so vacuum comes early and often.
create table run_queue (
  run_id       id primary key,
  pool_id      id not null,
  is_resume    boolean not null default false,
  priority     smallint not null,
  position     bigint generated always as identity
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index run_queue_next on run_queue (pool_id, is_resume desc, priority desc, position);

-- Live processes, and offers that may become one. Deleted when the run ends or changes hands.
create table placements (
  run_id            id primary key,
  runner_id         id not null,
  epoch             int not null,
  offered_at        timestamptz not null default now(),
  accepted_at       timestamptz,
  lease_expires_at  timestamptz not null
) with (fillfactor = 75, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index placements_by_runner on placements (runner_id);

-- `data` is JSON as text, for the reason given at runs.input, and because it goes to readers as it came.
create table run_events (
  run_id   id not null,
  cursor   int not null,
  -- Milliseconds since the epoch by the clock of the machine where it happened: shown to readers, compared with nothing.
  at       bigint not null,
  channel  text collate "C" not null,
  type     text collate "C" not null,
  data     text not null,
  primary key (run_id, cursor)
) with (autovacuum_vacuum_insert_scale_factor = 0.2);
