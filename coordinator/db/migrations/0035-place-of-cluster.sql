-- The table in which this row was noted. A dump that is restored into the same database makes a new one. Null: not
-- noted yet; coordinators of the version before leave it alone.
alter table cluster add column noted_in oid;
