-- Deleted runs whose log and journal are still to be taken away: up to number `most` of both, behind number `done`.
create table run_erasures (
  org_id  id not null,
  run_id  id not null,
  most    integer not null,
  done    integer not null default 0,
  primary key (org_id, run_id)
);
