-- Workers of jobs that hold a lock of their session while they live. Coordinators of before this hold none, and are
-- not in here.
create table job_workers (
  id text primary key
);
