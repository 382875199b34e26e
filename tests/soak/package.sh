#!/usr/bin/env bash
# Packages of the commit: built twice from two clones in two folders they are the same, byte by byte, images too; lintian has nothing
# to say of the .deb; tarball and image are within their sizes; the tarball runs where it was unpacked, the wheel in a virtual
# environment without a network, the image's tree in a chroot; what is built for arm64 starts under qemu and judges as this machine
# does. Releases: package_trees.sh. PARTS="tarball wheel image arm64" tries these alone.
# deadline: 3000 s
set -u
dir=$TMPDIR/package
mkdir "$dir"
. tests/live/says.bash
tree=$PWD
unset RANKTRAIN_OPTIONS
export RANKTRAIN_DATASET=generated PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
CC=$(command -v ccache >/dev/null && echo 'ccache gcc' || echo gcc)
command -v dpkg-buildpackage dh >/dev/null || { echo 'no debhelper: apt install debhelper'; exit 77; }
/usr/bin/python3 -c 'import setuptools, wheel' 2>/dev/null || { echo 'apt install python3-setuptools python3-wheel'; exit 77; }
part() { [[ " ${PARTS:-tarball wheel image arm64} " == *" $1 "* ]]; }
machine=$(uname -m) arch=$(dpkg --print-architecture) version=$(cat VERSION)

git clone -q . "$dir/1" && git clone -q "$dir/1" "$dir/2-elsewhere" || exit 1
for n in 1 2-elsewhere; do
    (cd "$dir/$n" && unset BUILD OUT BIN MAKEFLAGS && DEPS=0 make -j"$(nproc)" CC="$CC" PACKAGES=deb,tarball,wheel package) >"$dir/said" 2>&1 || fail "make package of $n"
done
one=$dir/1/build/package
diff "$one/SHA256SUMS" "$dir/2-elsewhere/build/package/SHA256SUMS" >"$dir/said" || fail 'two builds differ'
[ "$(wc -l <"$one/SHA256SUMS")" = 3 ] || fail 'not three packages'
cat "$one/SHA256SUMS"
if command -v lintian >/dev/null; then
    lintian --fail-on error,warning "$one/work-$arch"/deb/*.changes >"$dir/said" 2>&1 || fail 'lintian'
else
    echo 'no lintian: the .deb was not looked at by it'
fi
size=$(stat -c %s "$one/rankquake-$version-linux-$machine.tar.gz")
echo "tarball $size bytes, .deb $(stat -c %s "$one"/*.deb), wheel $(stat -c %s "$one"/*.whl)"
[ "$size" -le 60000000 ] || fail 'the tarball is larger than 60 MB'

# ---- the tarball, wherever it is unpacked ----
mkdir "$dir/unpacked" && tar -xzf "$one/rankquake-$version-linux-$machine.tar.gz" -C "$dir/unpacked"
at=$dir/unpacked/rankquake-$version-linux-$machine
if part tarball; then
    says 0 'scenarios/tour.yaml' 'the tarball knows its scenarios' "$at/bin/rankquake" list scenarios
    # glibc 2.34 is the oldest that it promises to start with.
    objdump -T "$at"/lib/rankquake/rank* 2>/dev/null | grep -oE 'GLIBC_2\.[0-9]+' | sort -uV | tail -n 1 >"$dir/said"
    awk -F. '{ exit !($2 <= 34) }' "$dir/said" || fail 'it wants a newer C library than 2.34'
    "$at/bin/rankquake" run restart/worker-killed --out "$dir/runs" >"$dir/said" 2>&1 || fail "the tarball's programs do not pass restart/worker-killed"
    for script in live/first_hour live/installed live/store-tls seeds/standalone; do
        mkdir "$dir/${script#*/}"
        TMPDIR=$dir/${script#*/} BIN=$at/lib/rankquake bash "tests/$script.sh" >"$dir/said" 2>&1 || [ $? = 77 ] || fail "$script with the tarball"
    done
fi

# ---- the wheel ----
files_of_venv() { (cd "$dir/venv" && find . -name __pycache__ -prune -o -print | sort); }

# A script that speaks through the client of the wheel is held at the step that a scenario names, killed there, and goes on.
try_client() {
    cat >train.py <<'PY'
import os, sys
import rankquake

if sys.prefix == sys.base_prefix or not rankquake.__file__.startswith(sys.prefix + os.sep):
    sys.exit("this is not the client of the wheel: " + rankquake.__file__)
state, steps = sys.argv[1], 40
rq = rankquake.Client()
rq.ready()
step = int(open(state).read()) if os.path.exists(state) else 0
rq.resume(step, state if step else "")
for step in range(step + 1, steps + 1):
    rq.step(step, loss=1 / step, samples=1)
    if step % 10 == 0:
        with open(state + ".new", "w") as file:
            file.write(str(step))
        os.rename(state + ".new", state)
rq.done("0" * 64)
PY
    cat >client.yaml <<E2
scenario: client
cluster: {nodes: 1}
job: {nnodes: "1:1", run: [python, $PWD/train.py, "{shared}/state"]}
timeline:
  - {when: {step: 37}, fault: worker-kill, on: rank 0}
expect: {restarts: 1, world_sizes: [1, 1]}
E2
    rankquake run client.yaml --out runs >"$dir/said" 2>&1 || { fail "a job that speaks by the client of the wheel: exit $?"; return; }
    grep -q '"kind":"resume".*"step":30[,}]' runs/*/history.jsonl || fail 'the client of the wheel did not say that it resumes'
}

try_wheel() {
    local rc
    mkdir "$dir/wheel"
    files_of_venv >"$dir/wheel/before"
    says 0 '' 'pip install' "$dir/venv/bin/pip" install --no-index "$(echo "$one"/*.whl)"
    says 0 "rankquake $version" 'the command of the wheel' "$dir/venv/bin/rankquake" --version
    (cd "$dir/wheel" && PATH=$dir/venv/bin:$PATH rankquake try --out tries -- rankrun --nnodes 2 --nproc-per-node 1 "$tree/tests/soak/package_job.py") >"$dir/said" 2>&1
    rc=$?
    grep -q 'control run' "$dir/said" && [ $rc -le 2 ] || fail "try by the wheel: exit $rc"
    (cd "$dir/wheel" && PATH=$dir/venv/bin:$PATH && try_client && exit $bad) || bad=1
    says 0 'Successfully uninstalled' 'pip uninstall' "$dir/venv/bin/pip" uninstall -y rankquake
    files_of_venv | diff "$dir/wheel/before" - >"$dir/said" || fail 'pip uninstall leaves something'
}

if ! part wheel; then :; elif /usr/bin/python3 -m venv "$dir/venv" >"$dir/said" 2>&1; then
    try_wheel
else
    echo 'no python3-venv: the wheel was not installed'
fi

# ---- the image ----
if ! part image; then :; elif [ "$(id -u)" = 0 ] && command -v buildah mmdebstrap >/dev/null && ci/package/mirror >/dev/null; then
    if (cd "$dir/1" && unset BUILD OUT BIN && PACKAGES=image ci/package/build) >"$dir/said" 2>&1; then
        image=$one/rankquake-$version-linux-$machine-image.tar
        echo "image $(stat -c %s "$image") bytes"
        [ "$(stat -c %s "$image")" -le 150000000 ] || fail 'the image is larger than 150 MB'
        mkdir "$dir/layout" "$dir/root" && tar -xf "$image" -C "$dir/layout"
        for layer in $(cd "$dir/layout/blobs/sha256" && file -- * | sed -n 's/: *gzip.*//p'); do tar -xzf "$dir/layout/blobs/sha256/$layer" -C "$dir/root"; done
        says 0 "rankquake $version" 'the program of the image' chroot "$dir/root" /usr/bin/rankquake --version
        says 0 'tour.yaml: valid' 'the scenarios of the image' unshare --mount --pid --fork sh -c \
            'mount -t proc proc "$1/proc" && exec chroot "$1" /usr/bin/rankquake lint tour' sh "$dir/root"
        (cd "$dir/2-elsewhere" && unset BUILD OUT BIN && PACKAGES=image ci/package/build) >"$dir/said" 2>&1 || fail 'a second image'
        cmp "$image" "$dir/2-elsewhere/build/package/${image##*/}" >"$dir/said" 2>&1 || fail 'two images differ'
    else
        fail 'the image was not made'
    fi
else
    echo 'no root, buildah, mmdebstrap or mirror: no image was made'
fi

# ---- arm64 ----
# What runs under qemu-user: all that needs no tree of processes, which qemu refuses (PR_SET_CHILD_SUBREAPER).
try_arm64() {
    local file qemu run=$tree/tests/histories/worker-killed.jsonl scenario=$tree/scenarios/restart/worker-killed.yaml
    sysroot=${SYSROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/rankquake/sysroot-arm64}
    (cd "$dir/1" && unset BUILD OUT BIN && ARCH=arm64 PACKAGES=deb,tarball,wheel ci/package/build) >"$dir/said" 2>&1 || { fail 'packages of arm64'; return; }
    dpkg-deb --info "$one/rankquake_${version}_arm64.deb" >"$dir/said" 2>&1
    grep -q 'Architecture: arm64' "$dir/said" && grep -q 'Depends: libc6 (>= 2.34)' "$dir/said" || fail 'the .deb of arm64 asks for something else'
    if command -v lintian >/dev/null; then
        lintian --fail-on error,warning "$one"/work-arm64/deb/*.changes >"$dir/said" 2>&1 || fail 'lintian, arm64'
    fi
    mkdir "$dir/arm64" && dpkg-deb -x "$one/rankquake_${version}_arm64.deb" "$dir/arm64/deb"
    tar -xzf "$one/rankquake-$version-linux-aarch64.tar.gz" --strip-components=1 -C "$dir/arm64"
    # The same programs, pages and scenarios in both, and pages as on this machine.
    for file in rankprobe rankquake rankrun ranktrain rankrun_tls.so rankquake_clock.so; do
        cmp "$dir/arm64/lib/rankquake/$file" "$dir/arm64/deb/usr/lib/rankquake/$file" >"$dir/said" 2>&1 || fail "$file of .deb and tarball differ"
    done
    diff -r "$dir/arm64/share/man" "$at/share/man" >"$dir/said" || fail 'pages of arm64'
    qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64) || { echo 'no qemu-user: what is packed for arm64 was not started'; return; }
    says 0 'scenarios/tour.yaml: valid' 'the tarball of arm64 knows its scenarios' "$qemu" -L "$sysroot" "$dir/arm64/lib/rankquake/rankquake" lint tour
    "$qemu" -L "$sysroot" "$dir/arm64/deb/usr/lib/rankquake/rankquake" judge "$run" --scenario "$scenario" >"$dir/arm64/there" 2>&1
    "$at/bin/rankquake" judge "$run" --scenario "$scenario" >"$dir/arm64/here" 2>&1
    [ -s "$dir/arm64/here" ] && diff "$dir/arm64/here" "$dir/arm64/there" >"$dir/said" || fail 'arm64 judges otherwise'
}
if ! part arm64; then :; elif [ "$arch" = amd64 ] && command -v aarch64-linux-gnu-gcc mmdebstrap >/dev/null; then
    (cd "$dir/1" && unset BUILD OUT BIN && CC=${CC/gcc/aarch64-linux-gnu-gcc} ci/package/cross) >"$dir/said" 2>&1
    rc=$?
    case $rc in
    0) sed -n 's/^ci.package.cross: //p' "$dir/said"
       try_arm64 ;;
    3) tail -n 1 "$dir/said" ;;
    *) fail "built for arm64: exit $rc" ;;
    esac
else
    echo 'no gcc-aarch64-linux-gnu or mmdebstrap: nothing was built for arm64'
fi
exit $bad
