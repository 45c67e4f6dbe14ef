import { spawn, spawnSync } from 'node:child_process'
import { readlinkSync } from 'node:fs'

/** Numbers of the system calls of x86_64, and of the requests of ptrace. */
const SCRIPT = `
my ($ptrace, $wait4, $setpgid) = (101, 61, 109);
my ($poke, $step, $get, $set, $detach, $seize, $interrupt) = (5, 9, 12, 13, 17, 0x4206, 0x4207);
sub ask { my $r = syscall($ptrace, $_[0], 1, $_[1], $_[2]); $r == -1 and print("refused: $!\\n"), exit; $r }
sub halted { my $status = pack('x8'); syscall($wait4, 1, $status, 0x40000000, 0) }
ask($seize, 0, 0);
ask($interrupt, 0, 0);
halted();
my $registers = pack('x512');
ask($get, 0, $registers);
my @was = unpack('q27', $registers);
my @is = @was;
# It waits in a system call, whose instruction has two bytes: there it executes another one, and then that one again.
@is[10, 13, 14, 15, 16] = ($setpgid, 0, 0, -1, $was[16] - 2);
ask($set, 0, pack('q27', @is));
ask($step, 0, 0);
halted();
if ($was[15] >= 0 && $was[10] < 0) { @was[10, 15, 16] = ($was[15], -1, $was[16] - 2) }
ask($set, 0, pack('q27', @was));
open(my $file, '<', '/proc/1/stat') or die;
my ($from, $to) = (split ' ', (<$file> =~ s/.*\\) //r))[47, 48];
for (my $at = $from; $at < $to; $at += 8) { ask($poke, $at + 0, 0) }
ask($detach, 0, 0);
print getpgrp(1) == 1 ? "done\\n" : "refused: it stayed in its group\\n";
`

/**
 * Takes the first process of its pid namespace out of the process group and clears the environment of that, and starts
 * another that has left both. Answers the name of the namespace, or why that could not be done.
 */
export async function run({ stays }) {
  const { stdout, stderr } = spawnSync('perl', ['-e', SCRIPT], { encoding: 'utf8' })
  if (stdout !== 'done\n') return console.log(`${stdout}${stderr}`.trim())
  const child = spawn('sleep', ['300'], { cwd: '/', detached: true, stdio: 'ignore', env: {} })
  child.unref()
  console.log(readlinkSync('/proc/self/ns/pid'))
  if (stays) await new Promise(() => setInterval(() => {}, 1000))
}
