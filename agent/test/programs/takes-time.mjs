export async function run({ ms }) {
  await new Promise((resolve) => setTimeout(resolve, ms))
  return process.pid
}
