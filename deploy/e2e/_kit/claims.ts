import type { Database } from '@windlass/coordinator/db/client.ts'

/** Sees each claim at the very moment at which it commits, and what then stood about the work of its runner. */
export async function watchClaims({ db }: Pick<Database, 'db'>): Promise<void> {
  await db`
    create table claims_seen (
      n bigserial primary key, runner_id text not null, run_id text not null, state text not null, epoch int not null
    )`
  await db`
    create function see_claim() returns trigger language plpgsql as $$
    begin
      insert into claims_seen (runner_id, run_id, state, epoch)
      select new.runner_id, new.run_id, i.state, i.epoch
      from runner_intake i
      where i.runner_id = new.runner_id;
      return null;
    end $$`
  // Deferred: it fires as the last thing before the commit.
  await db`
    create constraint trigger see_claim after insert on placements
    deferrable initially deferred for each row execute function see_claim()`
}

/** How many claims have been seen, and of them those that gave out work against the word of the time. */
export async function claimsSeen(
  { db }: Pick<Database, 'db'>,
  runner: string,
): Promise<{ all: number; forbidden: number }> {
  const [row] = await db<{ all: number; forbidden: number }[]>`
    select count(*)::int as all, count(*) filter (where state <> 'open')::int as forbidden
    from claims_seen
    where runner_id = ${runner}`
  return row!
}
