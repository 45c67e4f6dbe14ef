import { execFileSync } from 'node:child_process'

// Their numbers, and of a call that everybody may make.
const NUMBERS = {
  x64: { add_key: 248, request_key: 249, keyctl: 250, getppid: 110 },
  arm64: { add_key: 217, request_key: 218, keyctl: 219, getppid: 173 },
}
const PERL = `
  my ($add, $request, $keyctl, $getppid) = map { $_ + 0 } @ARGV;
  my ($type, $name, $value) = ("user", "windlass-left", "ticket");
  sub told { my ($call, $answer) = @_; print "$call ", ($answer < 0 ? $! + 0 : "done"), "\\n"; }
  told("add_key", syscall($add, $type, $name, $value, length($value), -4));
  told("request_key", syscall($request, $type, $name, 0, 0));
  told("keyctl", syscall($keyctl, 0, -3, 1));
  told("x32", syscall(0x40000000 + $keyctl, 0, -3, 1));
  told("getppid", syscall($getppid));
`

/** What the kernel answers to who asks for keyrings: an error by its number, or that it is done. */
export async function run() {
  const { add_key, request_key, keyctl, getppid } = NUMBERS[process.arch]
  const args = [add_key, request_key, keyctl, getppid].map(String)
  const said = execFileSync('perl', ['-e', PERL, ...args], { encoding: 'utf8' })
  return Object.fromEntries(
    said
      .trim()
      .split('\n')
      .map((line) => line.split(' ')),
  )
}
