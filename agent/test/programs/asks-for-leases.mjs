import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

// F_SETLEASE with F_WRLCK and with F_UNLCK, F_SETDELEG, which most kernels do not know, F_GETLEASE and F_GETFL.
const PERL = `
  open(my $file, "<", $ARGV[0]) or die $!;
  sub told { my ($call, $answer) = @_; print "$call ", ($answer ? "done" : $! + 0), "\\n"; }
  told("take", fcntl($file, 1024, 1));
  told("give", fcntl($file, 1024, 2));
  told("delegate", fcntl($file, 1040, 0));
  told("look", fcntl($file, 1025, 0));
  told("flags", fcntl($file, 3, 0));
`

/** What the kernel answers to who asks for a lease on a file that it sees: an error by its number, or that it is done. */
export async function run() {
  const said = execFileSync('perl', ['-e', PERL, fileURLToPath(import.meta.url)], { encoding: 'utf8' })
  return Object.fromEntries(
    said
      .trim()
      .split('\n')
      .map((line) => line.split(' ')),
  )
}
