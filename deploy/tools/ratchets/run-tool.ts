import { execFile } from 'node:child_process'
import path from 'node:path'
import { PROJECT } from '../source-files.ts'

const DEADLINE_MS = 240_000

/** The JSON that a tool of `node_modules` says of a folder. Its exit code says nothing: what is listed fails it too. */
export function runTool(root: string, script: string, args: readonly string[]): Promise<unknown> {
  const command = [path.join(PROJECT, 'node_modules', script), ...args]
  const options = { cwd: root, timeout: DEADLINE_MS, maxBuffer: 64 * 1024 * 1024, encoding: 'utf8' } as const
  return new Promise((resolve, reject) => {
    execFile(process.execPath, command, options, (error, stdout, stderr) => {
      try {
        resolve(JSON.parse(stdout))
      } catch {
        reject(new Error(`${script} gives no answer: ${error?.message ?? ''}\n${stdout}${stderr}`))
      }
    })
  })
}
