-- Runs: their record, and what becomes due. Only coordinator/engine writes these tables.

-- The durable record. One row is updated about five times in a run's life, never in an indexed column, and the free
-- space of a page takes the new version of the row (a HOT update): so the indexes are written once a run.
-- The hot tables have no foreign keys: each would lock the same few parent rows in every insert.
create table runs (
  id                   id primary key,
  org_id               id not null,
  workflow_id          id not null,
  version_id           id not null,
  pool_id              id not null,

  -- How it was started.
  trigger_kind         text not null,
  trigger_id           text,
  trigger_actor        text,
  environment          text,
  -- The variables of its first start. 0: it started when there were none. Null: it has not started.
  variable_set_id      bigint,
  tags                 text[] not null default '{}',
  priority             smallint not null default 0,
  -- What it needs of its runner, as one text: '' for one slot and no label, else `<slots>|<label>,<label>…` with the
  -- labels sorted. Runs with the same text wait in one line; there are few lines in a pool.
  needs                text collate "C" not null default '',
  -- Whom the run is counted with where its descriptor limits concurrency.
  concurrency_group    text collate "C",
  retry_of             id,
  parent_run_id        id,
  parent_entry         int,
  root_run_id          id,
  -- Length of the chain of parents; 0 at the root.
  depth                int not null default 0,

  -- Where it stands.
  status               text not null check (status in ('queued', 'pending', 'running', 'completed', 'failed',
                         'cancelling', 'cancelled', 'sleeping', 'awaiting_input', 'waiting_for_child')),
  -- Where the run's process is. Null: there is none. Changed only under the lock of the run's row, so that whoever
  -- completes something for a run knows whether a process can be told, or the run has to enter the queue.
  place                text collate "C" check (place in ('hot', 'replaying', 'parked')),
  attempt              int not null default 1,
  -- Raised by every placement. Whoever writes about a run names the epoch that he was given.
  epoch                int not null default 0,
  -- Number of the last event in the log, and of the last entry taken from the agent of this epoch.
  cursor               int not null default 0,
  seq                  int not null default 0,
  -- Number of the last entry in the journal, and characters of the results in it.
  entries              int not null default 0,
  journal_chars        bigint not null default 0,
  runner_id            id,
  -- What kept the program apart, as its agent said when it began.
  isolation            text,
  -- JSON of why a replay could not go on.
  blocked              text,

  -- What limits its tries: attempts lost by crashes, cut off as their agent was out of reach, ended by a thrown error;
  -- replays in a row that died by the program, and with their agent.
  crashes              int not null default 0,
  fences               int not null default 0,
  thrown               int not null default 0,
  replays              int not null default 0,
  cut_replays          int not null default 0,

  -- JSON as text: jsonb refuses strings with \u0000 and changes numbers and the order of keys.
  input                text not null,
  output               text,
  error                text,

  created_at           timestamptz not null default now(),
  queued_at            timestamptz not null default now(),
  claimed_at           timestamptz,
  started_at           timestamptz,
  suspended_at         timestamptz,
  finished_at          timestamptz,
  -- The time from creation on is used up: the process is being stopped for that.
  timed_out_at         timestamptz,
  cancel_requested_at  timestamptz,
  cancel_reason        text,

  -- What this attempt has computed, compared with the timeout; what all attempts have.
  active_ms            bigint not null default 0,
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
create index runs_by_environment on runs (org_id, environment, id) where environment is not null;
create index runs_by_parent on runs (parent_run_id, id) where parent_run_id is not null;
-- Every call of a child is one child.
create unique index runs_by_call on runs (parent_run_id, parent_entry) where parent_run_id is not null;

-- Tags of runs, written once with the run. An index of the array itself would not be in the order of the list.
create table run_tags (
  org_id  id not null,
  tag     text collate "C" not null,
  run_id  id not null,
  primary key (org_id, tag, run_id)
);

-- Runs that failed or were cancelled, which is what people look for: few among those that are completed. No index of
-- the runs names their status: it would be written several times a run.
create table runs_unsuccessful (
  org_id  id not null,
  run_id  id not null,
  status  text not null,
  primary key (org_id, run_id)
);

-- The few unfinished runs among the many finished ones. An index with that condition would name a column that each run
-- changes, so that its last update could not be HOT: measured, an eighth of the work of a short run. So runs up to the
-- mark were looked at once, and those that had not finished by then stand in `runs_remaining`; behind the mark, which
-- follows a few minutes late, all are looked at.
create table sweep_mark (
  is_only  boolean primary key default true check (is_only),
  run_id   id not null
);
insert into sweep_mark (run_id) values ('');
create table runs_remaining (
  run_id  id primary key,
  org_id  id not null
) with (autovacuum_vacuum_scale_factor = 0.05);
create index runs_remaining_of_org on runs_remaining (org_id, run_id);

-- The first run that was asked for under a key. Rows that have expired are taken over, and cleaned away by a job.
create table idempotency_keys (
  org_id        id not null,
  workflow_id   id not null,
  key           text collate "C" not null,
  -- SHA-256 of the whole request.
  request_hash  bytea not null,
  run_id        id not null,
  expires_at    timestamptz not null,
  primary key (org_id, workflow_id, key)
);
create index idempotency_keys_by_expiry on idempotency_keys (expires_at);

-- Runs that count where a descriptor limits concurrency, and those that wait to be counted. Both change only under the
-- advisory lock of their group.
create table concurrency_slots (
  run_id     id primary key,
  group_key  text collate "C" not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index concurrency_slots_by_group on concurrency_slots (group_key, run_id);

create table concurrency_waiters (
  run_id     id primary key,
  group_key  text collate "C" not null,
  pool_id    id not null,
  needs      text collate "C" not null default '',
  -- The limit of the version that the run executes.
  slots      int not null,
  priority   smallint not null,
  position   bigint generated always as identity
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index concurrency_waiters_next on concurrency_waiters (group_key, priority desc, position);
create index concurrency_waiters_by_slots on concurrency_waiters (group_key, slots);

-- Only what may be claimed now. Rows live for milliseconds, so vacuum comes early and often.
create table run_queue (
  run_id      id primary key,
  pool_id     id not null,
  needs       text collate "C" not null default '',
  is_resume   boolean not null default false,
  priority    smallint not null,
  position    bigint generated always as identity,
  entered_at  timestamptz not null default now()
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index run_queue_next on run_queue (pool_id, needs, is_resume desc, priority desc, position);

-- Processes of runs, and offers that may become one. Deleted when the run ends or changes hands.
create table placements (
  run_id            id primary key,
  runner_id         id not null,
  epoch             int not null,
  -- What it occupies of its runner's slots.
  slots             smallint not null default 1,
  offered_at        timestamptz not null default now(),
  accepted_at       timestamptz,
  renewed_at        timestamptz,
  -- When something of it was last taken from its agent.
  acked_at          timestamptz,
  lease_expires_at  timestamptz not null,
  -- By how much a lease or an offer was lengthened because nobody could renew it, in milliseconds, and when last.
  lengthened_ms     bigint,
  lengthened_at     timestamptz
) with (
  fillfactor = 75,
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0
);
create index placements_by_runner on placements (runner_id);

-- How runs lost their processes.
create table run_losses (
  run_id           id not null,
  epoch            int not null,
  attempt          int not null,
  runner_id        id,
  at               timestamptz not null default now(),
  -- unknown: until its runner is heard of again.
  what             text not null check (what in ('program', 'daemon', 'host', 'network', 'unknown', 'operator')),
  reason           text not null,
  -- It has used up one of the descriptor's retries: of fences, unless its runner is heard of again and was killed.
  is_counted       boolean not null default false,
  last_ack_at      timestamptz,
  last_renewal_at  timestamptz,
  -- By how much the lease had been lengthened.
  lengthened_ms    bigint,
  primary key (run_id, epoch)
);
create index run_losses_unknown on run_losses (runner_id) where what = 'unknown';

-- Everything that becomes due by itself. Orgs take turns at it.
create table timers (
  run_id  id not null,
  org_id  id not null,
  -- sleep, input: completes entry n · enqueue: enters the queue · queue-timeout, wall-timeout: ends the run
  kind    text collate "C" not null check (kind in ('sleep', 'input', 'enqueue', 'queue-timeout', 'wall-timeout')),
  n       int not null default 0,
  due_at  timestamptz not null,
  primary key (run_id, kind, n)
) with (autovacuum_vacuum_scale_factor = 0.05);
create index timers_of_org_by_due on timers (org_id, due_at);

-- Questions to people.
create table inputs (
  id           id primary key,
  org_id       id not null,
  run_id       id not null,
  n            int not null,
  prompt       text not null,
  -- JSON Schema of the answer; null: any JSON.
  schema       text,
  -- Answer when time is up; null: the call fails then.
  on_timeout   text,
  status       text collate "C" not null default 'open' check (status in ('open', 'answered', 'timed_out', 'closed')),
  created_at   timestamptz not null default now(),
  due_at       timestamptz,
  closed_at    timestamptz,
  answer       text,
  answered_by  text,
  unique (run_id, n),
  constraint closed_exactly_when_not_open check ((closed_at is null) = (status = 'open'))
);
create index inputs_by_org on inputs (org_id, id);
create index inputs_open on inputs (org_id, id) where status = 'open';
