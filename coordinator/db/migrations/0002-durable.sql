-- Runs that wait, survive and continue.

alter table runs
  -- Where the run's process is. Null: there is none. Changed only under the lock of the run's row, so that whoever completes
  -- something for a run knows whether a process can be told, or the run has to enter the queue.
  add column place          text collate "C" check (place in ('hot', 'replaying', 'parked')),
  -- Number of the last entry in the journal.
  add column entries        int not null default 0,
  -- Characters of the results in it.
  add column journal_chars  bigint not null default 0,
  -- Attempts lost by crashes; attempts ended by a thrown error; replays that died, in a row.
  add column crashes        int not null default 0,
  add column thrown         int not null default 0,
  add column replays        int not null default 0,
  -- What this attempt has computed: compared with the timeout.
  add column active_ms      bigint not null default 0,
  add column suspended_at   timestamptz,
  -- JSON of why a replay could not go on.
  add column blocked        text,
  -- The time from creation on is used up: the process is being stopped for that.
  add column timed_out_at   timestamptz,
  -- Whom the run is counted with where its descriptor limits concurrency.
  add column concurrency_group text collate "C",
  add column parent_entry   int,
  -- Length of the chain of parents; 0 at the root.
  add column depth          int not null default 0;
update runs set place = 'hot' from placements p where p.run_id = runs.id;
-- Every call of a child is one child.
create unique index runs_by_call on runs (parent_run_id, parent_entry) where parent_run_id is not null;
create index runs_by_parent on runs (parent_run_id, id) where parent_run_id is not null;

-- What a run has asked for and what it got. See shared/wire/journal.ts for the words.
create table journal (
  run_id        id not null,
  n             int not null,
  attempt       int not null,
  -- Which call of that attempt it is.
  position      int not null,
  parent        text not null,
  kind          text collate "C" not null check (kind in ('sleep', 'input', 'child', 'step')),
  name          text not null,
  hash          text not null,
  occurrence    int not null,
  args          text not null,
  site          text not null,
  -- closed: nobody waits for it any more, as its run has ended or its attempt is over.
  state         text collate "C" not null check (state in ('open', 'done', 'failed', 'closed')),
  result        text,
  child_run_id  id,
  has_drifted   boolean not null default false,
  opened_at     timestamptz not null default now(),
  due_at        timestamptz,
  completed_at  timestamptz,
  -- Order in which entries were completed by others than the program itself.
  completion    bigint,
  -- Order in which the program was given the results, how many calls it had made by then, and whether it was idle.
  delivered     int,
  after         int not null default 0,
  idle          boolean not null default false,
  primary key (run_id, n)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
create sequence journal_completions;
-- What is there and has not been given to its program.
create index journal_undelivered on journal (run_id) where completion is not null and delivered is null;

-- Everything that becomes due by itself.
create table timers (
  run_id  id not null,
  -- sleep, input: completes entry n · enqueue: enters the queue · queue-timeout, wall-timeout: ends the run
  kind    text collate "C" not null check (kind in ('sleep', 'input', 'enqueue', 'queue-timeout', 'wall-timeout')),
  n       int not null default 0,
  due_at  timestamptz not null,
  primary key (run_id, kind, n)
) with (autovacuum_vacuum_scale_factor = 0.05);
create index timers_by_due on timers (due_at);

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
