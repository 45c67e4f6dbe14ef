-- When this epoch began, where it began after a restore: what agents held before may execute for a while yet.
alter table cluster add column begun_at timestamptz;
