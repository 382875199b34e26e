#!/usr/bin/env bash
# ci/deps decides rightly what to install, against a dpkg and an apt that are made up: nothing is
# installed here.
set -eu
deps=$PWD/ci/deps
mkdir "$TMPDIR/bin"
cd "$TMPDIR"
export PATH=$TMPDIR/bin:$PATH
touch missing unknown

program() { # program NAME < SCRIPT
    { echo '#!/bin/sh'; cat; } >"bin/$1"
    chmod +x "bin/$1"
}
program dpkg-query <<END
for name; do :; done
if grep -qx "\$name" $TMPDIR/missing; then echo not-installed; else echo installed; fi
END
program apt-cache <<END
grep -qx "\$2" $TMPDIR/unknown || echo '  Candidate: 1.0'
END
program apt-get <<END
echo "apt-get \$*" >>$TMPDIR/calls
[ ! -e $TMPDIR/refuse ] || { echo 'E: the disk is full' >&2; exit 100; }
case "\$*" in *APT::Status-Fd=3*)
    printf '%s\n' 'dlstatus:1:0:Retrieving file 1 of 2' 'dlstatus:2:50.5:Retrieving file 2 of 2: a long name' nonsense 'dlstatus:2:x:y' 'pmstatus:gcc:20.0:Unpacking gcc' 'pmstatus:gcc:100.0:Installed gcc' >&3
    echo 'apt prints a lot'
    ;;
esac
case \$1 in
update) : >$TMPDIR/unknown ;;
install) : >$TMPDIR/missing ;;
esac
END
program id <<'END'
echo "${FAKE_UID-0}"
END

fail() {
    echo "$1"
    cat said calls
    exit 1
}

# judge RC CALLS-PATTERN SAID-PATTERN MISSING UNKNOWN: lists are words.
judge() {
    local rc=0
    printf '%s\n' $4 >missing
    printf '%s\n' $5 >unknown
    : >calls
    "$deps" >said 2>&1 </dev/null || rc=$?
    [ "$rc" = "$1" ] || fail "$4 missing: exit $rc, wanted $1"
    [ "$(tr '\n' ';' <calls | sed -E 's/ -[a-z-]+( DPkg[^ ;]*)?//g; s/ DPkg[^ ;]*//g')" = "$2" ] || fail "$4 missing: wanted calls $2"
    [ "$(wc -l <said)" -le 12 ] && grep -qE -- "$3" said || [ -z "$3" ] || fail "$4 missing: nowhere: $3"
}

judge 0 '' '' '' ''
[ ! -s said ] || fail 'it speaks although nothing is missing'
judge 0 'apt-get install gcc;' 'installing gcc' gcc ''
judge 0 'apt-get install libcurl4-gnutls-dev;' 'installing libcurl4-gnutls-dev' 'libcurl4-openssl-dev libcurl4-gnutls-dev' libcurl4-openssl-dev
judge 0 'apt-get install libcurl4-openssl-dev;' 'installing libcurl4-openssl-dev' 'libcurl4-openssl-dev libcurl4-gnutls-dev' ''
judge 0 'apt-get update;apt-get install libfyaml-dev;' 'reading the package lists' libfyaml-dev libfyaml-dev

FAKE_UID=1000 judge 3 '' 'apt-get install -y --no-install-recommends gcc make' 'gcc make' ''
FAKE_UID=1000 judge 0 '' 'not installed: dataset-fashion-mnist' dataset-fashion-mnist ''
FAKE_UID=1000 judge 0 '' 'not installed: libssl-dev; rankrun is built without TLS' 'dataset-fashion-mnist libssl-dev' ''
judge 0 'apt-get install libssl-dev openssl;' 'installing libssl-dev openssl' 'libssl-dev openssl' ''

[ "$("$deps" --list | sort -u | wc -l)" = "$("$deps" --list | wc -l)" ] || fail 'a package is listed twice'
if "$deps" --nonsense >said 2>&1; then fail 'an unknown option is taken'; fi

# ---- how far it is ----
deps_with() { # deps_with RC ARGUMENT...: gcc is missing
    local rc=0 wanted=$1
    shift
    echo gcc >missing
    : >unknown
    : >calls
    "$deps" "$@" >said 2>&1 </dev/null || rc=$?
    [ $rc = "$wanted" ] || fail "$*: exit $rc, wanted $wanted"
}
deps_with 0 --quiet
[ ! -s said ] || fail '--quiet speaks'
touch refuse
deps_with 3 --quiet
grep -q 'the disk is full' said && grep -q 'still missing: gcc' said || fail 'what went wrong is not said'
rm refuse
deps_with 0 --json-progress 4 4>objects
cat >expected <<END
downloading 0 false
downloading 50 false
downloading 100 true
setting up 20 false
setting up 100 false
setting up 100 true
END
sed -E 's/.*"of":"([a-z ]+)","unit":"percent","done":([0-9]+),"total":100,"rate":null,"left_s":(null|[0-9]+),"elapsed_s":[0-9]+,"over":([a-z]+)\}$/\1 \2 \4/' objects | diff expected - >said || fail 'objects of headway'
deps_with 64 --json-progress 9
deps_with 64 --json-progress
deps_with 64 --json-progress x
if command -v script >/dev/null; then # on a terminal, and on one that can do nothing
    for width in 24 80; do
        echo gcc >missing
        TERM=xterm COLUMNS=$width script -qec "$deps" /dev/null >said </dev/null || fail 'on a terminal'
        tr '\r' '\n' <said | grep '%' >lines || fail 'no line on a terminal'
        [ "$(awk '{ if (length > n) n = length } END { print n }' lines)" -lt $width ] || fail "lines of more than $width"
        grep -q '^ 50 %  downloading' lines || fail "a line of $width"
    done
    grep -q '^100 %  setting up  Installed gcc' lines || fail 'what is set up'
    if grep -q 'apt prints' said; then fail 'the line and what apt prints'; fi
    echo gcc >missing
    TERM=dumb script -qec "$deps" /dev/null >said </dev/null || fail 'on a dumb terminal'
    if grep -q '%' said; then fail 'a line on a dumb terminal'; fi
fi
