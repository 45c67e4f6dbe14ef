-- One row: when any coordinator last was there to renew leases, by the clock of the database. See
-- placements/store-pulse.ts.
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

-- By how much a lease or an offer was lengthened because nobody could renew it, in milliseconds, and when last.
alter table placements
  add column lengthened_ms  bigint,
  add column lengthened_at  timestamptz;

-- Attempts that were cut off because their agent was out of reach: `retries.fence` limits them, and nothing else does.
alter table runs add column fences int not null default 0;

alter table run_losses
  -- It has used up one of the descriptor's retries: of fences, unless its runner is heard of again and was killed.
  add column is_counted     boolean not null default false,
  -- By how much the lease had been lengthened.
  add column lengthened_ms  bigint;

-- The longest silence that its agent may believe it is allowed before it ends its programs: raised before a longer one
-- is told, lowered when the agent says that it obeys a shorter one. For agents of earlier versions
-- it is unknown; a day is the upper bound.
alter table runners add column told_fence_ms int not null default 0;
update runners set told_fence_ms = 86400000;
