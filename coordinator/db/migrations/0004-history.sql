-- What runs leave behind, which grows for ever: in partitions, so that indexes stay small and what is old can go as a
-- whole. A partition holds the runs that were created in one month, by their ids; coordinator/db/partitions.ts makes
-- them ahead. There is none for what fits no other: it would be searched for each new one. No foreign key leads here.

-- Statements find their partitions under the settings of our sessions (general plans, nested loops) by `run_id = $1`,
-- by a join with `unnest` without more, or by `run_id = any($1)` together with the least and the greatest of these ids:
-- without those two it reads all partitions.

-- What happened in a run, in the order of its cursor: lifecycle, log lines, what the program tells.
-- `data` is JSON as text, for the reason given at runs.input, and because it goes to readers as it came.
create table run_events (
  run_id   id not null,
  cursor   int not null,
  -- Milliseconds since the epoch by the clock of its machine: shown to readers, compared with nothing.
  at       bigint not null,
  channel  text collate "C" not null,
  type     text collate "C" not null,
  data     text not null,
  primary key (run_id, cursor)
) partition by range (run_id);

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
) partition by range (run_id);
create sequence journal_completions;
-- What is there and has not been given to its program.
create index journal_undelivered on journal (run_id) where completion is not null and delivered is null;
-- What somebody still waits for, among the many entries that are done.
create index journal_open on journal (run_id, n) where state = 'open';

-- Makes one partition, from the first id to before the end. It is attached when it is ready: `create table … partition
-- of` would wait for every reader of the table, with all writers behind it. It is empty, so no check has to prove what
-- is in it, and no insert has to pay for one.
create function add_partition(parent text, name text, first_id text, end_id text) returns void language plpgsql as $$
declare
  options constant text := case parent
    when 'journal' then
      'fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05'
    else 'autovacuum_vacuum_insert_scale_factor = 0.2'
  end;
begin
  execute format('create table %I (like %I including all) with (%s)', name, parent, options);
  execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, name, first_id, end_id);
end $$;
