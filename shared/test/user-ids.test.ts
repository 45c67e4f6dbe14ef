import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { ownerAmong } from '../user-ids.ts'

test('users that somebody else has are told with their owner', (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'windlass-user-ids-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const registries = { passwd: path.join(folder, 'passwd'), subuid: path.join(folder, 'subuid') }
  writeFileSync(registries.passwd, '# people\nroot:x:0:0::/root:/bin/sh\nann:x:700010:700010::/home/ann:/bin/sh\n')
  writeFileSync(registries.subuid, 'bob:800000:65536\n')
  const owner = (first: number, last: number) => ownerAmong({ first, last }, registries)
  assert.match(String(owner(700_000, 700_999)), /User id 700010 belongs to ann/)
  assert.match(String(owner(865_000, 866_000)), /800000-865535 belong to containers of bob/)
  assert.match(String(owner(790_000, 900_000)), /bob/)
  for (const [first, last] of [
    [700_011, 700_999],
    [799_000, 799_999],
    [865_536, 866_000],
  ] as const)
    assert.equal(owner(first, last), undefined)
})
