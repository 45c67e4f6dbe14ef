-- What pulses owe to placements that they passed over, as somebody held them: by how much they are to be lengthened,
-- and until when they last at least. Nearly always empty. See coordinator/engine/store/owed.ts. Coordinators of the
-- version before do not know it: their pulses wait for what is held, and they may take away what is owed something.
create table lengthenings_owed (
  run_id       id primary key,
  epoch        int not null,
  -- The end of the gap, the last one where there were several.
  gap_at       timestamptz not null,
  -- When the placement was offered, taken or renewed, as it was seen then.
  touched_at   timestamptz not null,
  -- Sum of the gaps, in milliseconds.
  forward_ms   float8 not null,
  least_until  timestamptz
);
