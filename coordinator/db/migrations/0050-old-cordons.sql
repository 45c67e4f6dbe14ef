-- What lifts the coordinator's own cordons looks each five seconds: it read all runners of all orgs.
create index runner_intake_cordons on runner_intake (since) where state = 'cordoned' and by_kind = 'system';
