-- When the agent said hello last: what it wrote before that is on its way.
alter table runners add column connected_at timestamptz;
