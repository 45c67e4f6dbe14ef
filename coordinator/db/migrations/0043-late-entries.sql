-- When a coordinator said last that it has yet to write what agents told before or in an outage. The others decide
-- nothing by clocks meanwhile that such an end may change. See coordinator/engine/commit/backlog.ts.
alter table pulse add column late_at timestamptz;
