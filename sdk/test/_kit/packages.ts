import path from 'node:path'
import type { TestContext } from 'node:test'
import { packFolder } from '../../cli/commands/deploy.ts'
import { folderOf } from './run-cli.ts'

/** An installed package. */
export function packageFiles(
  name: string,
  files: Record<string, string>,
  manifest: Record<string, unknown> = {},
): Record<string, string> {
  const all = { ...files, 'package.json': JSON.stringify({ name, version: '1.0.0', ...manifest }) }
  return Object.fromEntries(Object.entries(all).map(([file, content]) => [`node_modules/${name}/${file}`, content]))
}

/** Packs a program, unpacks it elsewhere and loads one of its vendored packages. */
export async function vendored(t: TestContext, files: Record<string, string>) {
  const packed = await packFolder(await folderOf(t, { 'workflow.jsonc': '{"slug":"a"}', ...files }))
  const elsewhere = await folderOf(t, Object.fromEntries(packed.files.map((file) => [file.path, file.content])))
  const load = async (name: string) =>
    (await import(path.join(elsewhere, `vendor/${name}.mjs`))) as Record<string, unknown>
  return { ...packed, load, vendor: packed.files.map((file) => file.path).filter((file) => file.startsWith('vendor/')) }
}
