-- breaking
-- Coordinators of before would give work to runners that are drained, and to runners without the labels that it needs.

-- JSON of what is set for the machines of a pool; what is left out has its default.
alter table runner_pools add column settings json not null default '{}';

alter table runners
  add column protocol         int not null default 2,
  -- What the agent says about itself: see AgentFacts in shared/wire/agent.ts.
  add column capabilities     text[] not null default '{}',
  add column isolation        json,
  add column unready          json not null default '[]',
  -- The start of the agent that was welcomed last, its machine and that machine's boot; null before protocol 3.
  add column instance         text,
  add column instance_host    text,
  add column instance_boot    text,
  -- When its connection ended, and whether the other side ended it: a process that dies closes its sockets, a machine that is gone
  -- or out of reach does not.
  add column disconnected_at  timestamptz,
  add column disconnected_by  text check (disconnected_by in ('agent', 'silence', 'coordinator')),
  -- The key before the present one, until the agent has used the present one.
  add column former_key       jsonb,
  add column key_changed_at   timestamptz not null default now(),
  add column copy_refused_at  timestamptz,
  -- Set when it is forgotten: the row stays for the names that runs show.
  add column deregistered_at  timestamptz;

-- Whether a runner is given work. A table of its own: a claim holds these rows in share mode until it commits, and a drain waits for
-- that; heartbeats, which write the rows of `runners`, must not.
create table runner_intake (
  runner_id          id primary key references runners on delete cascade,
  state              text not null default 'open' check (state in ('open', 'cordoned', 'draining', 'revoked')),
  epoch              int not null default 0,
  since              timestamptz not null default now(),
  by_kind            text check (by_kind in ('caller', 'agent', 'system')),
  by_name            text,
  reason             text not null default '',
  deadline_at        timestamptz,
  on_deadline        text check (on_deadline in ('cancel', 'leave')),
  -- Offers in a row that it did not accept in time.
  unaccepted         int not null default 0,
  -- When preparing a run failed on it, of late.
  failures           timestamptz[] not null default '{}',
  quarantined_at     timestamptz,
  quarantined_until  timestamptz,
  quarantine_reason  text
);
insert into runner_intake (runner_id, state)
select id, state
from runners;
alter table runners drop column state;
create index runner_intake_deadlines on runner_intake (deadline_at) where deadline_at is not null;
create index runners_by_pool on runners (pool_id);

-- What a run needs of its runner, as one text: '' for one slot and no label, else `<slots>|<label>,<label>…` with the labels sorted.
-- Runs with the same text wait in one line; there are few lines in a pool.
alter table runs add column needs text collate "C" not null default '';
alter table run_queue add column needs text collate "C" not null default '';
alter table concurrency_waiters add column needs text collate "C" not null default '';
drop index run_queue_next;
create index run_queue_next on run_queue (pool_id, needs, is_resume desc, priority desc, position);

alter table placements
  -- What it occupies of its runner's slots.
  add column slots       smallint not null default 1,
  add column renewed_at  timestamptz,
  -- When something of it was last taken from its agent.
  add column acked_at    timestamptz;

-- What kept the program apart, as its agent said when it began.
alter table runs add column isolation text;

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
  last_ack_at      timestamptz,
  last_renewal_at  timestamptz,
  primary key (run_id, epoch)
);
create index run_losses_unknown on run_losses (runner_id) where what = 'unknown';

-- When the deadline of the present drain was acted upon.
alter table runner_intake add column deadline_done_at timestamptz;

-- A deleted pool stays for the name that its runs show, and comes back when one of its name is created.
alter table runner_pools add column deleted_at timestamptz;
