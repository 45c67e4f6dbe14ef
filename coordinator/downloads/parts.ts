import { join } from 'node:path'

const DEPLOY = join(import.meta.dirname, '../../deploy')

/** What is handed out as it lies in `deploy`: read, never imported. */
export const PARTS = {
  install: join(DEPLOY, 'install/install.sh'),
  undo: join(DEPLOY, 'install/undo.sh'),
  uninstall: join(DEPLOY, 'install/uninstall.sh'),
  releaseCgroup: join(DEPLOY, 'install/release-cgroup.sh'),
  command: join(DEPLOY, 'install/windlass'),
  npmCommand: join(DEPLOY, 'install/windlass.mjs'),
  unit: join(DEPLOY, 'systemd/windlass-agent.service'),
  userUnit: join(DEPLOY, 'systemd/windlass-agent.user.service'),
  dockerfile: join(DEPLOY, 'docker/agent.Dockerfile'),
  kubernetes: join(DEPLOY, 'kubernetes/agent.yaml'),
} as const
