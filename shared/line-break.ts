/**
 * What ends a line for anybody who reads a text by lines: besides the line feed a carriage return alone (.NET, and with
 * it the runner of GitHub Actions), and what `splitlines` of Python takes.
 */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
export const LINE_BREAK = /\r\n|[\n-\r\u001c-\u001e\u0085\u2028\u2029]/
