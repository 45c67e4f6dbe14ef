-- What a run waits for now. By the number alone, whoever reads it passes over what former attempts have left open, and
-- over steps: a run may have 25,000 of each.
create index journal_waits on journal (run_id, attempt, n) where state = 'open' and kind <> 'step';
