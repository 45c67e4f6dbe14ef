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

/**
 * Script of Perl that does so from a file of FUSE that it serves itself, at descriptor 3, and whose reading it never
 * answers: no signal ends that. Arguments: the folder where it is mounted, and the file of the pipe.
 */
export const HOLDS_PIPE_OVER_FUSE = `
my ($folder, $file) = @ARGV;
my ($lookup, $getattr, $open, $read, $init) = (1, 3, 14, 15, 26);
sub answer { my ($id, $error, $body) = @_; syswrite($fuse, pack('LlQ', 16 + length $body, $error, $id) . $body) }
sub attributes { pack('Q6L10', $_[0], 4096, 0, 0, 0, 0, 0, 0, 0, $_[0] == 1 ? 040777 : 0100666, 1, 0, 0, 0, 4096, 0) }
open(our $fuse, '+<&=', 3) or die;
if (fork() == 0) {
  alarm ${LAST_S};
  while (sysread($fuse, my $request, 1 << 18)) {
    my (undef, $call, $id, $node) = unpack('LLQQ', $request);
    if ($call == $init) { answer($id, 0, pack('L4SSL10', 7, 31, 4096, 0, 0, 0, 4096, (0) x 9)) }
    elsif ($call == $lookup) { answer($id, 0, pack('Q4L2', 2, 0, 1000, 1000, 0, 0) . attributes(2)) }
    elsif ($call == $getattr) { answer($id, 0, pack('QLL', 1000, 0, 0) . attributes($node)) }
    elsif ($call == $open) { answer($id, 0, pack('QLL', 1, 0, 0)) }
    elsif ($call == $read) { print STDERR "asked\\n" }
    else { answer($id, -38, '') }
  }
  exit;
}
open(my $from, '<', "$folder/file") or die "$!";
open(STDOUT, '>', $file) or die;
syscall(${SPLICE}, fileno($from), 0, 1, 0, 4096, 0);
`

export const NEEDS_PERL_AND_SPLICE =
  (process.platform !== 'linux' && 'it needs Linux') ||
  (SPLICE === undefined && 'it does not know the number of splice here') ||
  (toolPath('perl') === undefined && 'it needs perl')
