-- By which number a process of the agent counts the connection over which it said hello last, and which process: what
-- it says with a lower one is read late. Null where the agent does not count. Coordinators of the version before leave
-- both alone, also where another process has said hello since: that is what the second one is for.
alter table runners
  add column instance_connection int,
  add column counting_process    text;
