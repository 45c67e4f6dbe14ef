import { toolPath } from '../../../isolation/tools.ts'

const NUMBERS: Partial<Record<NodeJS.Architecture, number>> = { x64: 275, arm64: 76 }
/** Number of the call. */
export const SPLICE = NUMBERS[process.arch]

/** Should nobody end it. */
export const LAST_S = 90

/**
 * Script of Perl that holds the lock of a pipe: it splices into it from a socket with nothing to read. Arguments: the
 * descriptor of the pipe; the seconds after which something comes, again and again, or 0 for never; and the file of the
 * pipe where it has no such descriptor yet. What comes is a frame of standard output. It gives a reader a reason to
 * read; for that moment the lock is free, and where several processes want it, one of them has it before the reader.
 */
export const HOLDS_PIPE = `
use Socket;
alarm ${LAST_S};
my ($fd, $pause, $file) = ($ARGV[0] + 0, $ARGV[1], $ARGV[2]);
if ($file) { open(STDOUT, '>', $file) or die }
socketpair(my $near, my $far, AF_UNIX, SOCK_STREAM, 0) or die;
if ($pause && fork() == 0) {
  alarm ${LAST_S};
  while (1) {
    syswrite($far, pack('aVx8', 'o', 3) . "yes") or die;
    select(undef, undef, undef, $pause);
  }
}
$pause && fork() && fork();
while (syscall(${SPLICE}, fileno($near), 0, $fd, 0, 4096, 0) > 0) {}
`

export const NEEDS_PERL_AND_SPLICE =
  (process.platform !== 'linux' && 'it needs Linux') ||
  (SPLICE === undefined && 'it does not know the number of splice here') ||
  (toolPath('perl') === undefined && 'it needs perl')
