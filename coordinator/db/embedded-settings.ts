/** The server's settings for our load: short statements, few sessions, commits that must last, a quiet machine when idle. */
import type { Layout } from './embedded-layout.ts'

const SETTINGS: Record<string, string> = {
  // The unix socket is the only way in, and the folder it sits in is closed to others.
  listen_addresses: '',
  port: '5432',
  unix_socket_permissions: '0700',
  // Three coordinators with 20 sessions each, their job queues, and a person with psql.
  max_connections: '100',
  // The working set (queue, live runs, the newest events) fits; the rest is the system's file cache.
  shared_buffers: '128MB',
  // Event batches write much WAL: fewer checkpoints mean fewer whole pages in it. Recovery reads at most about this much.
  max_wal_size: '2GB',
  checkpoint_timeout: '15min',
  // Whole pages shrink to a fraction, so more fits between two checkpoints (the npm build knows pglz only).
  wal_compression: 'on',
  // Worker processes for reading would only add processes that idle: our reads come from memory.
  io_method: 'sync',
  // Nothing is replicated logically, so nothing needs to wait for it.
  max_logical_replication_workers: '0',
  // No statement of ours is long enough to be worth a second process or a compiler.
  max_parallel_workers_per_gather: '0',
  jit: 'off',
  // Solid-state disks: reading a page out of order costs about the same.
  random_page_cost: '1.1',
  // A killed coordinator's statement must not hold its locks until it ends by itself.
  client_connection_check_interval: '10s',
  // Refused statements are the program's to report, and their detail could show users' payloads. `log` is above `error` here.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_checkpoints: 'off',
  log_timezone: 'UTC',
  timezone: 'UTC',
}

export function serverArguments(layout: Layout, over: Record<string, string>): string[] {
  const all = { ...SETTINGS, unix_socket_directories: layout.seenByServer.socket, ...over }
  return ['-D', layout.seenByServer.data, ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
}
