/** What a field of an input means, by its name, where neither its schema nor the example of its row says it. */
export const FIELDS: Readonly<Record<string, string>> = {
  org: 'Slug of the org.',
  run: 'Id of a run.',
  schedule: 'Id of the schedule.',
  input: 'Id of the question.',
  job: 'Id of a job.',
  pool: 'Name or id of the pool.',
  runner: 'Id of the runner.',
  connection: 'Id of the connection.',
  delivery: 'Id of the delivery.',
  key: 'Id of the key; not the key itself.',
}
