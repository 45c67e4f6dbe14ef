import type { ExamplesOf } from '../example.ts'
import { IDS, NINE } from '../example-things.ts'

const AT = '5f0c2a9be4d1.1041'
const COMPLETED = JSON.stringify({
  at: NINE + 4_200,
  type: 'run.completed',
  run: IDS.run,
  workflow: 'reconcile',
  cursor: 9,
  data: {},
})

export const events: ExamplesOf<'events'> = {
  stream: {
    about: [
      'The lifecycle events of all runs of the org, each once, those of a run in their order. `id` is a position,',
      '`event` the type, `data` the event as JSON: `run` and `workflow` say what it is about, `cursor` where it',
      'stands in the log of that run. The first event is `ready`, from which on nothing is missed. Whoever comes',
      'back within a day sends the last id as `Last-Event-ID` (a browser does so by itself) and misses nothing, and',
      'sees nothing twice. Where events behind that position are gone, the first event is `reset` in place of',
      '`ready`: list the runs, and follow on from there. An org keeps the events of a day, and a million at most.',
      'After `event: done`, which comes when the log ends under a reader or the reader falls behind what is kept,',
      'open the stream again. A line with a colon comes every 15 s so that proxies keep the line open.',
    ].join(' '),
    input: { org: 'acme', since: AT },
    output: [
      `event: ready\ndata: {"position":"${AT}"}\nid: ${AT}\n\n`,
      `event: run.completed\ndata: ${COMPLETED}\nid: 5f0c2a9be4d1.1042\n\n`,
    ].join(''),
    headers: {
      'Last-Event-ID': 'Goes on behind this position in place of `since`; browsers send it when they reconnect.',
    },
  },
}
