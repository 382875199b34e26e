#!/usr/bin/perl
# The worker of sandboxed.yaml: perl reach.pl FOLDER PROGRAM [ARGUMENT...]. It tries what --sandbox refuses, in ways that change
# nothing where they are not refused, and what jobs need. All that is otherwise than it must be is printed, and ends it with 9;
# else it becomes the program. System calls by their numbers on x86-64.
use strict;
use warnings;
use Errno qw(EACCES EPERM ENOSYS EROFS ENXIO);
use Fcntl;
use POSIX ();

my ($folder, @program) = @ARGV;
my ($bad, $NOWHERE) = (0, 1); # 1: an address at which nothing is
mkdir $folder;
$folder .= "/$ENV{RANK}.$ENV{RANKRUN_ROUND}";
mkdir $folder or die "$folder: $!";

sub wrong { print STDERR 'not as it must be: ', @_, "\n"; $bad = 1 }

sub refused {
    my ($what, $error, $number, @args) = @_;
    $! = 0;
    my $answer = syscall $number, map({ 0 + $_ } @args), (0) x (6 - @args);
    POSIX::_exit(0) if $number == 56 && $answer == 0;
    wrong "$what: $answer ($!)" if $answer >= 0 || $! != $error;
}

sub works {
    my ($what, $done) = @_;
    wrong "$what does not work: $!" unless $done;
}

# ---- system calls that are refused, whatever they are asked for ----

my %calls = (
    ptrace => [101, 100], process_madvise => [440, -1], setns => [308, -1], unshare => [272, 0],
    init_module => [175, $NOWHERE], finit_module => [313, -1], delete_module => [176, $NOWHERE], create_module => [174, $NOWHERE],
    kexec_load => [246, 0, 1000], kexec_file_load => [320, -1, -1], bpf => [321, 99], reboot => [169, 0], syslog => [103, 100],
    iopl => [172, 0], ioperm => [173, 0, 0, 0], modify_ldt => [154, 99], acct => [163, $NOWHERE], lookup_dcookie => [212, 0],
    vhangup => [153], io_uring_setup => [425, 0, $NOWHERE], io_uring_enter => [426, -1], io_uring_register => [427, -1],
    userfaultfd => [323, 4], mount => [165, $NOWHERE, $NOWHERE], umount2 => [166, $NOWHERE], pivot_root => [155, $NOWHERE, $NOWHERE],
    chroot => [161, $NOWHERE], move_mount => [429, -1, $NOWHERE, -1, $NOWHERE], open_tree => [428, -1, $NOWHERE],
    open_tree_attr => [467, -1, $NOWHERE], fsopen => [430, $NOWHERE], fsconfig => [431, -1], fsmount => [432, -1],
    fspick => [433, -1, $NOWHERE], mount_setattr => [442, -1, $NOWHERE], open_by_handle_at => [304, -1, $NOWHERE],
    fanotify_init => [300, 1 << 30], fanotify_mark => [301, -1], quotactl => [179, 99], quotactl_fd => [443, -1],
    nfsservctl => [180], swapon => [167, $NOWHERE], swapoff => [168, $NOWHERE], settimeofday => [164, $NOWHERE],
    clock_settime => [227, 0, $NOWHERE], clock_adjtime => [305, 0, $NOWHERE], adjtimex => [159, $NOWHERE],
    sethostname => [170, $NOWHERE, 1], setdomainname => [171, $NOWHERE, 1], add_key => [248, $NOWHERE, $NOWHERE],
    request_key => [249, $NOWHERE, $NOWHERE], keyctl => [250, 99],
);
refused($_, EPERM, @{$calls{$_}}) for sort keys %calls;
refused('clone3', ENOSYS, 435, $NOWHERE, 0);
{
    no warnings 'portable';
    refused('a call of 32 bits (x32)', EPERM, 0x40000000 + 39);
}

# ---- by what they are asked for ----

my %spaces = (mount => 0x20000, cgroup => 0x2000000, name => 0x4000000, ipc => 0x8000000, user => 0x10000000, pid => 0x20000000,
    network => 0x40000000);
refused("a $_ namespace", EPERM, 56, $spaces{$_} | 17) for sort keys %spaces;
for my $kind (['a character', 0020600], ['a block', 0060600]) {
    my $path = "$folder/device";
    for my $call ([133, $path], [259, -100, $path]) {
        my @args = (@$call, $kind->[1], 0x103);
        $! = 0;
        my $answer = syscall shift @args, @args;
        wrong "$kind->[0] device by $call->[0]: $answer ($!)" if $answer >= 0 || $! != EPERM;
        unlink $path;
    }
}
pipe my $read, my $write or die;
for my $request (0x5412, 0x541c, 0x541d, 0x5423) {
    refused(sprintf('the request %x of a terminal', $_), EPERM, 16, fileno $read, $_) for $request, $request + (1 << 32);
}
my $room = pack 'L2', 0, 0;
works('a request of a pipe', syscall(16, fileno $read, 0x541b, $room) == 0);
works('a FIFO', POSIX::mkfifo("$folder/fifo", 0600));

my $child = fork;
defined $child or wrong "fork: $!";
if (!$child) { close $write; sysread $read, my $nothing, 1; POSIX::_exit(7) }
my ($limit, $old) = (pack('Q2', 64, 64), pack('Q2', 0, 0));
$! = 0;
wrong "limits of another: $!" if syscall(302, $child, 7, $limit, $old) >= 0 || $! != EPERM;
works('to read the limits of another', syscall(302, $child, 7, 0, $old) == 0);
works('a limit of its own', syscall(302, 0, 7, 0, $old) == 0 && syscall(302, 0, 7, $old, 0) == 0);
works('a signal to a child', kill 0, $child);
close $write;
works('a child', waitpid($child, 0) == $child && $? >> 8 == 7);

# ---- agent, guard and worker ----

my ($guard, $landlock) = (getppid, syscall 444, 0, 0, 1);
sub status_of { open my $f, '<', "/proc/$_[0]/status" or return {}; +{map { /^(\w+):\s+(\S+)/ ? ($1, $2) : () } <$f>} }
my $agent = status_of($guard)->{PPid};
my %who = (agent => $agent, guard => $guard, worker => $$);
for my $name (sort keys %who) {
    my $is = status_of($who{$name});
    ($is->{NoNewPrivs} // '') eq '1' or wrong "the $name may gain privileges";
    ($is->{Seccomp} // '') eq '2' or wrong "the $name is under no filter";
    for (qw(CapPrm CapEff CapBnd CapInh CapAmb)) {
        my $more = hex($is->{$_} // 'ffff') & ~0x401b;
        $more and wrong sprintf "the %s has capabilities, %s %x", $name, $_, $more;
    }
    next if $name eq 'worker';
    for (qw(environ mem maps)) {
        sysopen my $f, "/proc/$who{$name}/$_", O_RDONLY and wrong "$_ of the $name opens";
    }
}
wrong 'a signal reaches the agent' if $landlock >= 6 && kill 0, $agent;
works('a signal to the guard', kill 0, $guard);
mkdir "$folder/$_" for qw(a b);
if (open my $made, ">", "$folder/a/file") { close $made }
works('a file moved into another directory', rename "$folder/a/file", "$folder/b/file");
works('a link in another directory', link "$folder/b/file", "$folder/a/linked");

# ---- the machine ----

sub opens { my ($path, $how) = @_; $! = 0; return sysopen my $f, $path, $how | O_NONBLOCK | O_NOCTTY }
my @settings = grep { -e } qw(/proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sysrq-trigger /proc/irq/default_smp_affinity
    /sys/kernel/mm/transparent_hugepage/enabled /sys/power/state /sys/fs/cgroup/cgroup.procs /sys/kernel/profiling);
@settings or wrong 'there are no settings to try';
for (@settings) { wrong "$_ opens for writing, or not as it must: $!" if opens($_, O_WRONLY) || $! != EROFS }
works("$_ to be read", opens($_, O_RDONLY)) for grep { !/trigger/ } @settings;
works("$_ to be written", opens($_, O_RDWR)) for qw(/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/ptmx);
works('/proc/self/comm to be written', opens('/proc/self/comm', O_WRONLY));
works("$_ to be written", opens($_, O_RDWR)) for grep { -e } '/proc/pressure/cpu';
opens('/dev/tty', O_RDWR) || $! == ENXIO or wrong "/dev/tty: $!";
if (sysopen my $master, '/dev/ptmx', O_RDWR | O_NOCTTY) {
    my $number = pack 'L', 0;
    works('a terminal of its own', syscall(16, fileno $master, 0x80045430, $number) == 0 && -e '/dev/pts/' . unpack 'L', $number);
}
my @closed = grep { my @st = stat; @st && (-b _ || -c _) } map { glob } qw(/dev/mem /dev/kmsg /dev/port /dev/console /dev/tty1 /dev/fuse
    /dev/kvm /dev/rtc0 /dev/hwrng /dev/vport* /dev/ptp0 /dev/cuse /dev/snapshot /dev/loop* /dev/vd* /dev/sd* /dev/nvme* /dev/net/tun
    /dev/input/* /dev/ttyS* /dev/vcs* /dev/vga_arbiter /dev/uinput /dev/userfaultfd /dev/autofs /dev/btrfs-control);
@closed or print "no device to try here\n";
for (@closed) { wrong "$_ opens, or not as it must: $!" if opens($_, O_RDONLY) || $! != EACCES }
printf "reach: %d calls, %d settings, %d devices, Landlock %d\n", scalar keys %calls, scalar @settings, scalar @closed, $landlock;
exit 9 if $bad;
exec @program or die "$program[0]: $!";
