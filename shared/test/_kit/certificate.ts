import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'

/** Why no certificate can be made here, or false. */
export function whyNoOpenssl(): string | false {
  return spawnSync('openssl', ['version']).status === 0 ? false : 'openssl is not installed'
}

/** A certificate for `localhost` that nobody but its own file vouches for. */
export function aCertificate(folder: string, days = 30): { key: Buffer; cert: Buffer; file: string } {
  const [key, file] = [path.join(folder, 'key.pem'), path.join(folder, 'cert.pem')]
  const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const names = ['-subj', '/O=Windlass tests', '-addext', 'subjectAltName=DNS:localhost']
  const args = ['req', ...kind, ...names, '-days', String(days), '-keyout', key, '-out', file]
  execFileSync('openssl', args, { stdio: 'pipe' })
  return { key: readFileSync(key), cert: readFileSync(file), file }
}
