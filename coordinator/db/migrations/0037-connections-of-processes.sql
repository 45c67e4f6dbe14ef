-- By which number the process that speaks for the runner counts the connection over which it said hello last: what is
-- read later with a lower one was said before. Null where the agent does not say it. Coordinators of the version before
-- leave it alone, and it counts for the process in `instance_process` alone.
alter table runners add column instance_connection int;
