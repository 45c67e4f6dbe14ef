// Writes long numbered lines to stderr until it is ended.
process.send?.({ pid: process.pid })
for (let n = 0; ; n++) {
  process.stderr.write(`{"n":${n},"text":"${'x'.repeat(1000)}"}\n`)
  await new Promise((resolve) => setTimeout(resolve, 1))
}
