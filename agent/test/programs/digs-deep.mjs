import fs from 'node:fs'

/** Folders in folders, so many that no path leads to the innermost one. */
const [, , folder, depth] = process.argv
process.chdir(folder)
for (let n = 0; n < Number(depth); n++) {
  const name = 'd'.repeat(200)
  fs.mkdirSync(name)
  fs.writeFileSync('file', '')
  process.chdir(name)
}
