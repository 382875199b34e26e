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
