-- A change of a schedule meets ticks that are due: they are settled by the rules of before it.

-- Rules that held before changes, the oldest first, each with the moment of the change; `next_at` is then a tick of the
-- first of them. Empty: what is due is settled by the schedule itself.
alter table schedules add column earlier jsonb not null default '[]';

-- Those that were deleted are cleaned away after a while.
create index schedules_deleted on schedules (deleted_at) where deleted_at is not null;
