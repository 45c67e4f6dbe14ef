import type { ExamplesOf } from '../example.ts'

export const service: ExamplesOf<'service'> = {
  health: {
    about: 'Asks nobody else: it answers as long as the process can. For a restart by whoever watches it.',
    input: {},
    output: {
      status: 'ok',
      version: '0.1.0',
      uptimeMs: 86_400_000,
      tz: '2026c',
      baseUrl: 'https://windlass.example.com',
    },
  },
  ready: {
    about:
      'For a load balancer: `UNAVAILABLE` while the database does not answer within 2 s. Nothing is to be restarted ' +
      'for it: that is what `/healthz` is for.',
    input: {},
    output: { status: 'ready' },
  },
  metrics: {
    about:
      'In the text format of Prometheus. Whoever sends WINDLASS_METRICS_TOKEN as a bearer token may read ' +
      'it; without one this machine, by a loopback name and through no proxy, as long as the coordinator listens on ' +
      'loopback and neither WINDLASS_BASE_URL nor WINDLASS_TRUSTED_PROXIES is set.',
    input: {},
    output: '# TYPE windlass_runs gauge\nwindlass_runs{status="queued"} 0\n',
    bytes: { types: ['text/plain'], hasEtag: false },
  },
  openapi: {
    about: 'This document. It changes with the version of the coordinator only.',
    input: {},
    output: { openapi: '3.1.0', info: { title: 'Windlass', version: '0.1.0' } },
  },
  docs: {
    about: 'For a browser. Press Authorize there and paste a key to try operations.',
    input: {},
    output: '<!doctype html>\n<html lang="en">…</html>\n',
    bytes: { types: ['text/html'], hasEtag: true },
  },
  docsFile: {
    about: 'The page itself names them. No other files are there.',
    input: { file: 'swagger-ui.css' },
    output: '.swagger-ui{…}',
    bytes: { types: ['text/css', 'text/javascript', 'image/png'], hasEtag: true },
    fields: { file: 'Name of the file, as the page has it.' },
  },
  install: {
    about:
      'It installs for the whole machine as root, else for the user that runs it; `sh -s -- --help` names ' +
      'its flags. Nothing but this address is contacted.',
    input: {},
    output: '#!/bin/sh …',
    bytes: { types: ['text/x-shellscript'], hasEtag: true },
  },
  download: {
    about: '`SHA256SUMS` names the archives of the agent with their checksums, `packages.json` the packages for npm.',
    input: { file: 'SHA256SUMS' },
    output: '9f2c…  windlass-agent-0.1.0-linux-x64.tar.gz',
    bytes: { types: ['text/plain', 'application/gzip', 'application/yaml'], hasEtag: true },
    headers: {
      Range: 'A part of an archive or a package, as in `bytes=1000000-`, to go on with a download that broke off.',
      'If-Range': 'The `ETag` of the part that is there: where the file is another by now, the whole comes.',
    },
    fields: { file: 'Name of the file, as `SHA256SUMS` or `packages.json` has it.' },
  },
  workflowSchema: {
    about: 'Name its address as `$schema` in `workflow.jsonc`, and an editor completes and checks while you type.',
    input: {},
    output: { $schema: 'https://json-schema.org/draft/2020-12/schema', title: 'workflow.jsonc', type: 'object' },
  },
  protectedResource: {
    about:
      'MCP clients find it by the `WWW-Authenticate` of a 401. It names no authorization server: send a ' +
      'key or session as bearer.',
    input: {},
    output: {
      resource: 'https://windlass.example/mcp/v1',
      resource_name: 'Windlass',
      bearer_methods_supported: ['header'],
      scopes_supported: ['run:read', 'run:trigger'],
      resource_documentation: 'https://windlass.example/v1/docs',
    },
  },
}
