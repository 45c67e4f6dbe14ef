import { isIP } from 'node:net'
import { z } from 'zod'
import { MOST_EVENT_DATA_BYTES } from '@windlass/shared/model/event.ts'
import { MOST_DAYS } from '@windlass/shared/model/retention.ts'
import { MOST_BUNDLE_BYTES } from '@windlass/shared/model/workflow.ts'
import { DEFAULT_SIZES } from './sizes.ts'

const SECOND = 1000
const KIB = 1024
const MIB = 1024 * KIB
/** A value of a run goes in one frame, in which quotes double it; the socket takes 16 MiB. */
const MOST_VALUE_BYTES = 4 * MIB

/** 32 bytes in base64, of which the last character carries four bits only. */
export const SECRET_KEY = /^[A-Za-z0-9+/_-]{42}[AEIMQUYcgkosw048]=?$/

/** All settings of a coordinator, by their names in the environment. Lengths of time are in milliseconds. */
export const Settings = z.strictObject({
  WINDLASS_DATABASE_URL: z.string().min(1).meta({
    description: 'PostgreSQL 15 or newer.',
    otherwise: 'required; `npm start` brings its own',
  }),
  WINDLASS_HOST: z.string().default('127.0.0.1').meta({ description: 'Address to listen on.' }),
  WINDLASS_PORT: z
    .int()
    .min(0)
    .max(65_535)
    .default(8787)
    .meta({ description: 'Port to listen on; 0 takes a free one.' }),
  WINDLASS_HOME: z.string().default('.windlass').meta({
    description: 'Folder for objects, which all coordinators of a database share, and, embedded, the database.',
  }),
  WINDLASS_DISK_RESERVE_MB: z.int().min(0).max(1_048_576).optional().meta({
    description: 'With less free on the disk of its home it takes no deploys and no large deliveries; runs go on.',
    otherwise: '512, at most a tenth of the disk',
  }),
  WINDLASS_MAX_RUNS_DAYS: z.int().min(1).max(MOST_DAYS).optional().meta({
    description: 'Runs of all orgs are deleted so many days after their end; an org may say fewer.',
    otherwise: 'for ever, where an org does not say how long',
  }),
  WINDLASS_MAX_DELIVERIES_DAYS: z.int().min(1).max(MOST_DAYS).optional().meta({
    description: 'Deliveries of all orgs are deleted after so many days; an org may say fewer.',
    otherwise: 'for ever, where an org does not say how long',
  }),
  WINDLASS_LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error'])
    .default('info')
    .meta({ description: 'The least that is logged.' }),
  WINDLASS_DATABASE_CONNECTIONS: z.int().min(4).max(200).default(12).meta({
    description: 'Connections of one coordinator for reads and changes; runs, jobs, limits and notices have 22 more.',
  }),
  WINDLASS_HEARTBEAT_MS: z
    .int()
    .min(50)
    .default(10 * SECOND)
    .meta({ description: 'How often an agent renews its leases.' }),
  WINDLASS_FENCE_MS: z
    .int()
    .min(100)
    .default(50 * SECOND)
    .meta({ description: 'After so long without an answer an agent kills what it runs.' }),
  WINDLASS_LEASE_MS: z
    .int()
    .min(200)
    .default(75 * SECOND)
    .meta({ description: 'After so long without a heartbeat runs go to another agent.' }),
  WINDLASS_AMNESTY_MS: z
    .int()
    .min(0)
    .default(300 * SECOND)
    .meta({
      description:
        'After an outage or a start, leases last for 90 s at least. When such events follow one another, ' +
        'this is given for so long altogether.',
    }),
  WINDLASS_KEY_LIFE_MS: z
    .int()
    .min(200)
    .default(24 * 3600 * SECOND)
    .meta({ description: 'An agent makes itself a new key when three quarters of this are over.' }),
  WINDLASS_OFFER_MS: z
    .int()
    .min(100)
    .default(15 * SECOND)
    .meta({ description: 'An offer that is not accepted by then goes back into the queue.' }),
  WINDLASS_SWEEP_MS: z
    .int()
    .min(50)
    .default(5 * SECOND)
    .meta({ description: 'How often lost offers and leases are looked for.' }),
  WINDLASS_SWEEP_RUNS_MS: z
    .int()
    .min(50)
    .default(60 * SECOND)
    .meta({
      description: 'How often unfinished runs and bulk jobs are looked through for those that nobody would continue.',
    }),
  WINDLASS_METRICS_TOKEN: z
    .string()
    .min(16, 'must have 16 characters at least')
    .regex(/^\S+$/, 'must have no spaces: it is sent as a bearer token')
    .optional()
    .meta({
      description:
        'Opens /metrics to whoever sends it as a bearer token; else it is for this machine, if that alone is served.',
    }),
  WINDLASS_MAX_BODY_BYTES: z
    .int()
    .min(64 * KIB)
    .max(MOST_VALUE_BYTES)
    .default(DEFAULT_SIZES.maxBodyBytes)
    .meta({ description: 'Body of a request that carries neither files nor an input nor an answer.' }),
  WINDLASS_MAX_BUNDLE_BYTES: z
    .int()
    .min(64 * KIB)
    .max(MOST_BUNDLE_BYTES)
    .default(DEFAULT_SIZES.maxBundleBytes)
    .meta({
      description:
        'All files of a deploy together, 64 MiB at most. Its body may have 28 % more, for which ' +
        'WINDLASS_MAX_ORG_DEPLOYS_BYTES must have room.',
    }),
  WINDLASS_MAX_INPUT_BYTES: z
    .int()
    .min(KIB)
    .max(MOST_VALUE_BYTES)
    .default(DEFAULT_SIZES.maxInputBytes)
    .meta({
      description:
        'Input of a run, as JSON, 4 MiB at most; a retry takes over what was accepted once. ' +
        'A program that calls another run gives it 1 MiB at most: its journal takes no more.',
    }),
  WINDLASS_MAX_BATCH: z
    .int()
    .min(64 * KIB)
    .max(64 * MIB)
    .default(DEFAULT_SIZES.maxBatchBytes)
    .meta({ description: 'Bytes of a request that starts many runs, 64 MiB at most.' }),
  WINDLASS_MAX_OUTPUT_BYTES: z.int().min(KIB).max(MOST_VALUE_BYTES).default(DEFAULT_SIZES.maxOutputBytes).meta({
    description: 'What a run returns, as JSON, 4 MiB at most.',
  }),
  WINDLASS_MAX_ANSWER_BYTES: z.int().min(KIB).max(MOST_VALUE_BYTES).default(DEFAULT_SIZES.maxAnswerBytes).meta({
    description: 'Answer of a person to a question of a run, as JSON, 4 MiB at most.',
  }),
  WINDLASS_MAX_DELIVERY: z
    .int()
    .min(64 * KIB)
    .max(64 * MIB)
    .default(DEFAULT_SIZES.maxDeliveryBytes)
    .meta({
      description:
        'Bytes of what another system posts to a webhook or a connection, 64 MiB at most. Verified ones that ' +
        'are larger than an input are kept and start nothing.',
    }),
  WINDLASS_MAX_EVENT_DATA_BYTES: z
    .int()
    .min(4 * KIB)
    .max(MOST_EVENT_DATA_BYTES)
    .default(DEFAULT_SIZES.maxEventDataBytes)
    .meta({
      description:
        'Data of a phase, or a log line with its fields, as JSON, 4 to 256 KiB. Longer lines are split, a note ' +
        'stands in place of other data. Agents of earlier versions split lines at 64 KiB.',
    }),
  WINDLASS_MAX_CATCH_UP: z.int().min(1).max(200).default(100).meta({
    description:
      'Ticks that a schedule with `catchUp: all` makes up for after an outage: the newest, one a second; 200 at most.',
  }),
  WINDLASS_MAX_DEPLOYS_BYTES: z
    .int()
    .min(64 * MIB)
    .default(192 * MIB)
    .meta({
      description:
        'Files of deploys that one coordinator has in memory at once, all together; more is told to come back. ' +
        'Bodies of requests above 64 KiB have as much besides, and so have reads of files.',
    }),
  WINDLASS_MAX_ORG_DEPLOYS_BYTES: z
    .int()
    .min(64 * MIB)
    .default(96 * MIB)
    .meta({ description: 'The same for one org.' }),
  WINDLASS_LIMIT_IDENTITY_PER_MIN: z.int().min(0).max(10_000_000).default(600).meta({
    description: 'Requests that one key or session may send in a minute, over all coordinators; 0: no limit.',
  }),
  WINDLASS_LIMIT_ORG_PER_MIN: z
    .int()
    .min(0)
    .max(10_000_000)
    .default(6000)
    .meta({ description: 'The same for all keys and sessions of an org together.' }),
  WINDLASS_LIMIT_REFUSED_PER_MIN: z.int().min(0).max(10_000_000).default(300).meta({
    description: 'Refused credentials, and unknown webhooks, of one address (IPv6: /64) in a minute; 0: no limit.',
  }),
  WINDLASS_LIMIT_DELIVERIES_PER_MIN: z.int().min(0).max(10_000_000).default(600).meta({
    description: 'Verified deliveries that one webhook or connection takes in a minute; 0: no limit.',
  }),
  WINDLASS_LIMIT_UNVERIFIED_PER_MIN: z.int().min(0).max(10_000_000).default(60).meta({
    description: 'Deliveries from one address that may fail to verify in a minute; 0: no limit.',
  }),
  WINDLASS_LIMIT_WAITING: z.int().min(0).max(1_000_000).default(200).meta({
    description:
      'Streams, waiting requests and MCP calls that wait which a key or session may have open here; 0: no limit.',
  }),
  WINDLASS_LIMIT_ORG_WAITING: z.int().min(0).max(1_000_000).default(600).meta({
    description: 'The same for all keys and sessions of an org together.',
  }),
  WINDLASS_TRUSTED_PROXIES: z
    .array(z.string().refine(isNetwork, 'must be addresses or networks, such as 10.0.0.5 or 10.0.0.0/8 or fd00::/8'))
    .default([])
    .meta({
      description:
        'Addresses or networks of proxies whose `X-Forwarded-For`, `-Proto` and `-Host` count; separated by commas.',
    }),
  WINDLASS_ACCESS_LOG: z.boolean().default(false).meta({
    description: 'Log a line for each request: method, route, status, bytes, time, address, who asked.',
  }),
  WINDLASS_BASE_URL: z
    .string()
    .refine(isBase, 'must be an address such as https://windlass.example.com, with a path only where a proxy adds one')
    .optional()
    .meta({
      description:
        'The address by which others reach it, when a proxy stands in front; with the path that the proxy takes off.',
    }),
  WINDLASS_MCP_HOSTS: z
    .array(z.string().regex(/^[a-z0-9.-]+$|^\[[0-9a-f:.]+\]$/, 'must be names of hosts without ports, in lower case'))
    .default([])
    .meta({ description: 'Further host names under which /mcp/v1 is reached; separated by commas.' }),
  WINDLASS_MCP_ORIGINS: z
    .array(
      z.string().refine((origin) => URL.canParse(origin) && new URL(origin).origin === origin, {
        error: 'must be origins such as https://inspector.example.com',
      }),
    )
    .default([])
    .meta({ description: 'Further origins whose pages may call /mcp/v1; separated by commas.' }),
  WINDLASS_SECRET_KEY: z
    .string()
    // The keys themselves are in no sentence.
    .refine(
      (text) => text.split(',').every((key) => SECRET_KEY.test(key.trim())),
      'must be a key of 32 bytes in base64, as `openssl rand -base64 32` makes them, or several with commas',
    )
    .optional()
    .meta({ description: 'Seals secrets in the database. Several, separated by commas: the first seals, all open.' }),
  WINDLASS_SECRET_KEY_FILE: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'The same as a file, a key a line; read again when it changes. `npm start` makes one.' }),
  WINDLASS_DOWNLOADS: z.string().min(1).optional().meta({
    description: 'Folder with archives of the agent for further platforms, handed out by /downloads and /install.sh.',
  }),
  WINDLASS_STRICT: z
    .boolean()
    .default(false)
    .meta({ description: 'Check every answer against its schema; for tests.' }),
})

function isNetwork(text: string): boolean {
  const [address = '', prefix, ...more] = text.split('/')
  const bits = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1
  if (bits < 0 || more.length > 0) return false
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits)
}

function isBase(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, origin, pathname } = new URL(text)
  // What is not the same when written anew holds a query, a password, or a path that leads elsewhere. A shell reads the
  // path in `install.sh`.
  const isPlain = /^(\/[\w~-][\w.~-]*)*\/?$/.test(pathname)
  return isPlain && /^https?:$/.test(protocol) && text.replace(/\/$/, '') === `${origin}${pathname}`.replace(/\/$/, '')
}
