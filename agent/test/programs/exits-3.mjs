export function run() {
  console.log('leaving')
  process.exit(3)
}
