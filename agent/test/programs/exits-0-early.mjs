export function run() {
  setTimeout(() => process.exit(0), 5)
  return new Promise(() => {})
}
