-- Of an entry that an attempt took over: the last attempt before that was given its result, and its place in the order
-- there. A crash between the taking over and the giving left no order before. Null: none was given it; coordinators of
-- the version before leave it alone, and with it the order of an earlier attempt.
alter table journal add column former int[];
