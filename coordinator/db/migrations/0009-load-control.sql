-- breaking
-- Control of load: runs that count under several limits at once, throttled and debounced runs.

-- The groups that the run is counted in where its descriptor limits concurrency, each with its limit, in the order in
-- which it enters them: `wf_…/customer.id/Xy0…=1 wf_…=10`. Until now: one group, without field and limit. Of runs that
-- have ended nobody reads them.
update runs r
set concurrency_group = r.workflow_id
  || case when r.concurrency_group like '%/%'
       then '/' || regexp_replace(v.descriptor #>> '{concurrency,key}', '^input\.', '')
         || '/' || split_part(r.concurrency_group, '/', 2)
       else '' end
  || '=' || (v.descriptor #>> '{concurrency,limit}')
from workflow_versions v
where v.id = r.version_id and r.concurrency_group is not null and r.finished_at is null
  and r.id in (
    select run_id from runs_remaining
    union all
    select id from runs where id > (select run_id from sweep_mark) and finished_at is null
  );

update concurrency_slots s
set group_key = split_part(r.concurrency_group, '=', 1)
from runs r
where r.id = s.run_id;

update concurrency_waiters w
set group_key = split_part(r.concurrency_group, '=', 1)
from runs r
where r.id = w.run_id;

-- A run has a slot in each of its groups. One that waits keeps those that it has got already.
alter table concurrency_slots drop constraint concurrency_slots_pkey;
alter table concurrency_slots add primary key (run_id, group_key);

-- It waits in one group after the other. The others, with their limits; null: this is the last.
alter table concurrency_waiters add column rest text collate "C";

-- What an `enqueue` waits for besides its time: JSON. Null: a delay, or the pause before another attempt.
alter table timers add column holds text;

-- Starts of throttled runs, by throttle. Changed only under the lock of the throttle's row.
create table throttles (
  key       text collate "C" primary key,
  -- Number of the last start that was given.
  last      bigint not null,
  -- Nothing is delayed any more by what was given before.
  clear_at  timestamptz not null default now()
);
create index throttles_by_clearing on throttles (clear_at);

-- Times at which runs may enter the queue; of each throttle as many as its limit looks back to.
create table throttle_starts (
  key  text collate "C" not null,
  n    bigint not null,
  at   timestamptz not null,
  primary key (key, n)
);

-- The run that further calls are merged into, while it waits for them.
create table debounces (
  key        text collate "C" primary key,
  run_id     id not null,
  -- It enters the queue then at the latest, however many calls come.
  latest_at  timestamptz not null
);
create index debounces_by_end on debounces (latest_at);
