export function run({ megabytes }) {
  const line = `${'x'.repeat(1023)}\n`
  for (let i = 0; i < megabytes * 1024; i++) process.stdout.write(line)
  return 'printed'
}
