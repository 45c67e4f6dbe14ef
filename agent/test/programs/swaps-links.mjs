import fs from 'node:fs'
import path from 'node:path'

/** Puts a folder and a link in turns under one name, as fast as it can. */
const [, , folder, theirs] = process.argv
const [name, other] = ['a', 'b'].map((each) => path.join(folder, each))
console.log('begins')
for (;;) {
  for (const act of [
    () => fs.mkdirSync(folder),
    () => fs.mkdirSync(name),
    () => fs.writeFileSync(path.join(name, '0'), ''),
    () => fs.renameSync(name, other),
    () => fs.symlinkSync(theirs, name),
    () => fs.unlinkSync(name),
    () => fs.renameSync(other, name),
  ]) {
    try {
      act()
    } catch {
      // Removed meanwhile: that is what this is about.
    }
  }
}
