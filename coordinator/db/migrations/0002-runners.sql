-- Runners: machines, the pools that they are in, and whether they are given work.

-- Pools of runners. A deleted pool stays for the name that its runs show, and returns when one of its name is created.
create table runner_pools (
  id          id primary key,
  org_id      id not null references orgs,
  name        text collate "C" not null,
  -- What is set for the machines of the pool; what is left out has its default.
  settings    json not null default '{}',
  created_at  timestamptz not null default now(),
  deleted_at  timestamptz,
  unique (org_id, name)
);

-- Tokens by which new machines join a pool.
create table registration_tokens (
  id          id primary key,
  pool_id     id not null references runner_pools on delete cascade,
  hash        bytea not null unique,
  uses_left   int not null check (uses_left >= 0),
  created_by  text not null,
  created_at  timestamptz not null default now(),
  expires_at  timestamptz not null
);

-- Machines with an agent, each with a key of its own. Heartbeats write these rows.
create table runners (
  id                 id primary key,
  org_id             id not null references orgs,
  pool_id            id not null references runner_pools,
  name               text not null,
  public_key         jsonb not null,
  -- The key before the present one, until the agent has used the present one.
  former_key         jsonb,
  key_changed_at     timestamptz not null default now(),
  labels             text[] not null default '{}',
  slots              int not null check (slots > 0),
  version            text not null,
  platform           text not null,
  -- Of its last hello.
  protocol           int not null default 1,
  -- What the agent says about itself: see AgentFacts in shared/wire/agent.ts.
  capabilities       text[] not null default '{}',
  isolation          json,
  unready            json not null default '[]',
  -- The start of the agent that was welcomed last, its machine and that machine's boot; null before the first welcome.
  instance           text,
  instance_host      text,
  instance_boot      text,
  copy_refused_at    timestamptz,
  -- The longest silence that the agent may believe it is allowed before it ends its programs: raised before a longer
  -- one is told, lowered when the agent says that it obeys a shorter one.
  told_fence_ms      int not null default 0,
  created_at         timestamptz not null default now(),
  last_poll_at       timestamptz,
  last_heartbeat_at  timestamptz,
  -- When its connection ended, and whether the other side ended it: a process that dies closes its sockets, a machine
  -- that is gone or out of reach does not.
  disconnected_at    timestamptz,
  disconnected_by    text check (disconnected_by in ('agent', 'silence', 'coordinator')),
  -- When it was forgotten: the row stays for the names that runs show.
  deregistered_at    timestamptz
);
create index runners_by_org on runners (org_id, id);
create index runners_by_pool on runners (pool_id);

-- Whether a runner is given work. A claim holds these rows in share mode until it commits, and a drain waits for that;
-- heartbeats must not, so they write another table.
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
  -- When the deadline of the present drain was acted upon.
  deadline_done_at   timestamptz,
  -- Offers in a row that it did not accept in time.
  unaccepted         int not null default 0,
  -- When preparing a run failed on it, of late.
  failures           timestamptz[] not null default '{}',
  quarantined_at     timestamptz,
  quarantined_until  timestamptz,
  quarantine_reason  text
);
create index runner_intake_deadlines on runner_intake (deadline_at) where deadline_at is not null;

-- One row: when any coordinator last was there to renew leases, by the clock of the database. See
-- coordinator/engine/store/pulse.ts.
create table pulse (
  one        boolean primary key default true check (one),
  at         timestamptz not null default now(),
  -- How often a gap lengthened the leases.
  gaps       int not null default 0,
  -- The end of the last gap, or the last start of a coordinator.
  gap_at     timestamptz,
  -- When the present series of them began; moved on by each gap, in which nobody was served.
  series_at  timestamptz
);
insert into pulse default values;
