#!/usr/bin/perl
# A check of tee-told.yaml: what workers have left in the files of --log-dir is what their agents have shown on the console
# (--tee): each line once, whole and in order, behind the worker's header; what the filters name is in the filtered files; and
# who may read all that is as the umask says. A worker's first line tells who it is: "I am ROLE LOCAL_RANK RANK of HOST, ...";
# what it writes to standard error begins with "! ".
use strict;
use warnings;

sub answer {
    my ($status, $seen) = @_;
    $seen =~ s/[^ -~]/?/g;
    $seen =~ s/["\\]/'/g;
    printf qq({"status": "%s", "seen": "%.300s", "expected": "what workers printed: once, whole and in order"}\n), $status, $seen;
    exit 0;
}

sub slurp {
    open my $file, '<', $_[0] or answer('fail', "$_[0]: $!");
    local $/;
    return <$file> // '';
}

# As the console has it: a line ends with a feed, a return or both, and what is longer than 64 KiB is shown in pieces.
sub lines_of {
    my @all;
    for my $line (split /\r\n|\n|\r/, $_[0], -1) {
        while (length $line >= 65536) { push @all, substr $line, 0, 65536, '' }
        push @all, $line;
    }
    pop @all if @all && $all[-1] eq '';
    return @all;
}

chdir $ENV{RANKQUAKE_RUN} or die "RANKQUAKE_RUN: $!";
my $logs = 'told/here';

# ---- what was written ----

my (%written, %wanted); # host and name of a worker: [round, stdout, stderr]; directory: lines for each filtered file
for my $dir (sort glob "$logs/*/attempt_*") {
    my @workers = glob "$dir/[0-9]*";
    @workers == 2 or answer('fail', @workers . " directories of workers in $dir");
    for my $own (@workers) {
        my ($k) = $own =~ /(\d+)$/;
        my ($out, $err) = map { slurp("$own/$_.log") } qw(stdout stderr);
        my ($who, $host, $round) = $out =~ /^I am (trainer $k \d+ of (\S+)), restart \d+, round (\d+)\n/
            or answer('fail', "$own/stdout.log does not begin as its worker did");
        push @{$written{$host}{$who}}, [$round, $out, $err];
        push @{$wanted{$dir}{stdout}}, grep { /windows|of the flood/ } lines_of($out);
        push @{$wanted{$dir}{stderr}}, grep { /trouble of rank 1/ } lines_of($err);
    }
    for my $stream (qw(stdout stderr)) {
        my $have = slurp("$dir/filtered_$stream.log");
        my $want = join '', map { "$_\n" } sort @{$wanted{$dir}{$stream} // []};
        join('', sort { $a cmp $b } map { "$_\n" } split /\n/, $have) eq $want
            or answer('fail', "$dir/filtered_$stream.log does not hold what the filters name");
    }
}
keys %written == 3 or answer('fail', 'there are files of ' . join(', ', sort keys %written) . ', and not of three nodes');

# ---- what was shown ----

my ($n, %shown) = (0);
for my $log (glob 'logs/n*/agent.log') {
    my ($host) = $log =~ m{/(n\d)/};
    for (split /\n/, slurp($log)) {
        if (/^(trainer \d \d+ of \S+) \$rank \$\{unknown\}: (.*)$/s) {
            push @{$shown{$host}{$1}{substr($2, 0, 2) eq '! ' ? 'stderr' : 'stdout'}}, $2;
        } elsif (!/^rankrun: /) {
            answer('fail', "$log has a line of nobody: $_");
        }
    }
}
for my $host (sort keys %written) {
    for my $who (sort keys %{$written{$host}}) {
        my @rounds = sort { $a->[0] <=> $b->[0] } @{$written{$host}{$who}};
        for my $stream (qw(stdout stderr)) {
            my @want = map { lines_of($_->[$stream eq 'stdout' ? 1 : 2]) } @rounds;
            my @have = @{delete $shown{$host}{$who}{$stream} // []};
            for my $i (0 .. (@want > @have ? $#want : $#have)) {
                my ($w, $h) = map { $_ // '(no more)' } $want[$i], $have[$i];
                $w eq $h or answer('fail', sprintf 'line %d of %s of %s: %.50s and not %.50s', $i + 1, $stream, $who, $h, $w);
            }
            $n += @want;
        }
    }
}

# ---- who may read it ----

sub must_have {
    my ($path, $due) = @_;
    my @st = lstat $path;
    my $mode = $st[2] & 07777;
    $mode == $due or answer('fail', sprintf '%s has the mode %04o and not %04o', $path, $mode, $due);
    $st[4] == $> or answer('fail', "$path is of the user $st[4] and not $>");
}

for (glob "$logs/*") { m{/tee-told_[a-z2-7]{8}$} or answer('fail', "what is $_?") }
must_have($_, 0777 & ~umask) for 'told', $logs, glob("$logs/*/attempt_*"), glob("$logs/*/attempt_*/[0-9]*");
must_have($_, 0666 & ~umask) for glob("$logs/*/attempt_*/*.log"), glob("$logs/*/attempt_*/*/*.log");
must_have($_, 0700) for glob "$logs/*";
answer('pass', "$n lines came out as they were printed");
