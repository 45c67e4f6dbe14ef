-- Schedules: what starts runs by itself.

-- Which tick a run was started for, and how: when it was due, because it was missed, or by hand.
alter table runs
  add column tick       text collate "C" check (tick in ('due', 'caught-up', 'manual')),
  add column tick_at    timestamptz,
  -- By how much it was late when the run was created, in milliseconds.
  add column tick_late  bigint,
  add constraint tick_is_whole check ((tick is null) = (tick_at is null) and (tick is null) = (tick_late is null));
-- Runs of what starts runs by itself, by its id.
create index runs_by_trigger on runs (trigger_id, id) where trigger_kind in ('schedule', 'webhook', 'connection');
-- A tick is one run, however many coordinators see it. A retry keeps the tick of its run.
create unique index runs_by_tick on runs (trigger_id, tick_at) where tick <> 'manual' and retry_of is null;

create table schedules (
  id                  id primary key,
  org_id              id not null references orgs,
  workflow_id         id not null references workflows,
  -- Made over the API, or by the descriptor of the workflow's current version.
  source              text not null check (source in ('api', 'descriptor')),
  -- By what the descriptor's is the same over deploys. Null: made over the API.
  identity            text collate "C",
  name                text,

  -- When it ticks: one of the three. Ticks of a rate lie whole steps behind its anchor.
  kind                text not null check (kind in ('cron', 'rate', 'at')),
  cron                text,
  timezone            text,
  rate_ms             bigint,
  anchor_at           timestamptz not null,
  at                  timestamptz,

  -- What its runs are given. The descriptor's names an environment; the API's has the id of one, and the name that it
  -- had.
  environment         text collate "C",
  environment_id      id,
  -- JSON as text, as the input of a run.
  input               text not null default 'null',

  jitter_ms           int not null default 0,
  catch_up            text not null default 'last' check (catch_up in ('skip', 'last', 'all')),
  catch_up_window_ms  int not null default 3600000,
  overlap             text not null default 'allow' check (overlap in ('allow', 'skip', 'cancel')),

  enabled             boolean not null default true,
  -- Somebody has said so, and deploys leave it.
  is_set_by_hand      boolean not null default false,
  paused_by           text,
  created_at          timestamptz not null default now(),
  updated_at          timestamptz not null default now(),
  created_by          text not null,

  -- Ticks up to this one are settled: they have fired, or are known to have been skipped or missed.
  settled_at          timestamptz not null,
  -- The next tick, and when it fires: later by its jitter. Null: there is none. One that is due already fires whatever
  -- becomes of the schedule meanwhile.
  next_at             timestamptz,
  due_at              timestamptz,
  -- Since when it rests, and why. What ticks meanwhile is skipped, and told when it goes on.
  rests_since         timestamptz,
  rests_because       text collate "C" check (rests_because in ('paused', 'workflow-deleted')),
  -- Why nobody can tell when it ticks: its zone is not known to a coordinator.
  stopped_because     text,
  -- It ticks no more: its time has passed, or the descriptor has it no longer.
  ended_at            timestamptz,
  ended_because       text collate "C" check (ended_because in ('over', 'not-in-descriptor')),
  deleted_at          timestamptz,
  -- Raised by every change. Whoever settles ticks names the one that he has decided by.
  revision            int not null default 0,
  -- The last entry of schedule_gaps, while nothing has fired since.
  gap_id              bigint,

  constraint one_kind check (
    (cron is not null) = (kind = 'cron') and (timezone is not null) = (kind = 'cron')
    and (rate_ms is not null) = (kind = 'rate') and (at is not null) = (kind = 'at')
  ),
  constraint identity_of_descriptor check ((identity is not null) = (source = 'descriptor')),
  constraint due_with_next check ((next_at is null) = (due_at is null)),
  constraint deleted_ticks_no_more check (deleted_at is null or due_at is null),
  constraint rests_for_a_reason check ((rests_since is null) = (rests_because is null)),
  constraint ended_for_a_reason check ((ended_at is null) = (ended_because is null))
) with (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.05);
create index schedules_by_org on schedules (org_id, id) where deleted_at is null;
create unique index schedules_of_descriptor on schedules (workflow_id, identity) where source = 'descriptor';
create index schedules_by_workflow on schedules (workflow_id, id);
create index schedules_due on schedules (org_id, due_at) where due_at is not null;

-- Ticks of which no run came, as ranges. Those that were missed, since nobody was there to fire them, are the facts of
-- `schedule.missed`.
create table schedule_gaps (
  id           bigint generated always as identity primary key,
  org_id       id not null references orgs,
  schedule_id  id not null references schedules,
  outcome      text not null check (outcome in ('skipped', 'missed')),
  -- A code, and a sentence for people.
  reason       text collate "C" not null,
  message      text not null,
  -- The unfinished run that they met.
  run_id       id,
  from_at      timestamptz not null,
  to_at        timestamptz not null,
  count        int not null,
  -- Of those that were missed so many fired late, and when.
  caught_up    int not null default 0,
  fired_at     timestamptz,
  created_at   timestamptz not null default now(),
  constraint caught_up_only_when_missed check (caught_up = 0 or outcome = 'missed')
);
create index schedule_gaps_by_schedule on schedule_gaps (schedule_id, id);

-- The zone data by which next_at was computed.
create table schedule_zone_data (
  is_only  boolean primary key default true check (is_only),
  tz       text not null
);
