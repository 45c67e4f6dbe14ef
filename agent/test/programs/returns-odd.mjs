export function run({ what }) {
  const cycle = { rows: [{}] }
  cycle.rows[0].owner = cycle
  const odd = { bigint: { total: [1, { sum: 5n }] }, cycle, function: () => {}, nothing: undefined, large: 'x'.repeat(2_000_000) }
  return odd[what]
}
