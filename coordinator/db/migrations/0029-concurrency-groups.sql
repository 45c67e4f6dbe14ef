-- How many slots of a group are taken: 60,000 of them took 20 ms to count, in every transaction of their workflow and
-- under its lock. A group of which none is taken has no row.
create table concurrency_groups (
  group_key  text collate "C" primary key,
  taken      int not null
) with (fillfactor = 50,
        autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- The database keeps the number, so that no statement can forget it, nor a coordinator of before. Whoever changes slots
-- holds the lock of their workflow: see engine/store/concurrency.ts.
create function count_taken_slots() returns trigger language plpgsql as $$
begin
  if not exists (select from taken_slots) then
    return null;
  end if;
  insert into concurrency_groups as g (group_key, taken)
  select group_key, count(*) from taken_slots group by group_key order by group_key
  on conflict (group_key) do update set taken = g.taken + excluded.taken;
  return null;
end $$;

create function count_left_slots() returns trigger language plpgsql as $$
begin
  if not exists (select from left_slots) then
    return null;
  end if;
  update concurrency_groups g
  set taken = g.taken - l.count
  from (select group_key, count(*) as count from left_slots group by group_key order by group_key) l
  where g.group_key = l.group_key;
  delete from concurrency_groups
  where taken = 0 and group_key in (select group_key from left_slots);
  return null;
end $$;

create trigger taken_slots_are_counted after insert on concurrency_slots
  referencing new table as taken_slots for each statement execute function count_taken_slots();
create trigger left_slots_are_counted after delete on concurrency_slots
  referencing old table as left_slots for each statement execute function count_left_slots();
-- Nobody changes a slot; by hand it may be done.
create trigger changed_slots_are_left after update on concurrency_slots
  referencing old table as left_slots for each statement execute function count_left_slots();
create trigger changed_slots_are_taken after update on concurrency_slots
  referencing new table as taken_slots for each statement execute function count_taken_slots();

-- Behind the triggers, whose lock lets nobody change slots until the commit.
insert into concurrency_groups (group_key, taken)
select group_key, count(*) from concurrency_slots group by group_key;
