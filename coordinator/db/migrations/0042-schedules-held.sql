-- Since when its tick waits for an agent that is out of reach: nobody else knows whether the run in its way has ended.
-- It is moved on by the time for which nobody was there to look.
alter table schedules add column held_since timestamptz;
