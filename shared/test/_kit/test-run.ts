/**
 * What the test runner tells every process of a run, also those that start with an environment of their own: the mark
 * by which it finds what was left behind, and how modules are loaded fast.
 */
const NAMES = ['WINDLASS_TEST_RUN', 'NODE_OPTIONS', 'NODE_COMPILE_CACHE']

export function testRunVariables(): Record<string, string> {
  return Object.fromEntries(NAMES.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])))
}
