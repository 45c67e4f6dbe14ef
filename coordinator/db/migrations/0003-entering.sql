-- How runs enter the queue.

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

-- Runs that count where a descriptor limits concurrency, and those that wait to be counted. Both change only under the advisory lock
-- of their group.
create table concurrency_slots (
  run_id     id primary key,
  group_key  text collate "C" not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index concurrency_slots_by_group on concurrency_slots (group_key, run_id);

create table concurrency_waiters (
  run_id     id primary key,
  group_key  text collate "C" not null,
  pool_id    id not null,
  -- The limit of the version that the run executes.
  slots      int not null,
  priority   smallint not null,
  position   bigint generated always as identity
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
create index concurrency_waiters_next on concurrency_waiters (group_key, priority desc, position);
create index concurrency_waiters_by_slots on concurrency_waiters (group_key, slots);
