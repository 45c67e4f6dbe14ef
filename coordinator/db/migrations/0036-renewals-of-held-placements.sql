-- The last heartbeat that named a placement which somebody held: it renewed the lease here, and a pulse writes it
-- there. Null: no heartbeat is noted, gaps alone. See coordinator/engine/store/owed.ts. Coordinators of the version
-- before tell such a renewal as a lengthening.
alter table lengthenings_owed add column renewed_at timestamptz;
