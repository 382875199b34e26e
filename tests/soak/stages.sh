#!/usr/bin/env bash
# The stages of ci/examples on runners: under gitlab-ci-local, from a package when `make package` has made one, in an ordinary user's
# account, and in containers without rights, with user namespaces and without (nodes are processes there). Needs a network once, for
# ci/consumers fetch. What cannot be run here is named; only if nothing can, it is skipped.
# deadline: 1200 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/runs.bash
tree=$PWD asked=0 missing=()
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY GITHUB_OUTPUT GITLAB_CI BUILDKITE JENKINS_URL XDG_CACHE_HOME
cache=${RANKQUAKE_CONSUMERS:-${HOME:-/root}/.cache/rankquake-consumers}
: >"$dir/said"
ci/consumers fetch
tarball=$(ls "${PACKAGE_DIR:-build/package}"/rankquake-*-linux-"$(uname -m)".tar.gz 2>/dev/null | head -n 1)
deb=$(ls "${PACKAGE_DIR:-build/package}"/rankquake_*_"$(dpkg --print-architecture)".deb 2>/dev/null | head -n 1)
[ -n "$tarball" ] && tarball=$(realpath "$tarball")
[ -n "$deb" ] && deb=$(realpath "$deb")
lacks() { missing+=("$*"); }

project() { # project FOLDER: a user's repository with a scenario that passes
    mkdir -p "$1/scenarios"
    cat >"$1/scenarios/passes.yaml" <<'END'
scenario: passes
cluster: {nodes: 2}
job: {run: [ranktrain, --steps=20, --dataset=generated]}
timeline: [{when: {step: 8}, fault: worker-kill, on: n1/0}]
END
    git -C "$1" init -q && git -C "$1" add -A && git -C "$1" -c user.name=x -c user.email=x@example.com commit -qm begin
}
collected() { # collected WHAT FOLDER
    asked=$((asked + 1))
    [ -s "$2/runs/junit.xml" ] && grep -q '<testsuite name="passes" .*failures="0" errors="0"' "$2/runs/junit.xml" || fail "$1: no report of a run that passed"
}

# ---- GitLab, by gitlab-ci-local's shell executor ----
gitlab() { # gitlab NAME PACKAGE
    local at=$dir/gitlab-$1
    project "$at"
    cp ci/examples/gitlab/template.yml "$at"
    cat >"$at/.gitlab-ci.yml" <<END
include:
  - local: template.yml
    inputs: {scenario: scenarios, source: "$tree", package: "$2", budget: 5m}
END
    git -C "$at" add -A && git -C "$at" -c user.name=x -c user.email=x@example.com commit -qm stage
    git -C "$at" remote add origin https://example.com/user/project.git
    (cd "$at" && timeout 500 node "$cache/node_modules/.bin/gitlab-ci-local" --home "$dir/gitlab-home" --force-shell-executor \
        --shell-isolation=false rankquake) >"$dir/said" 2>&1 </dev/null || fail "gitlab-ci-local with $1"
    collected "gitlab-ci-local with $1" "$at"
}
if [ -e "$cache/node_modules/.bin/gitlab-ci-local" ] && command -v node >/dev/null && command -v rsync >/dev/null; then
    [ -n "$tarball" ] && gitlab tarball "$tarball"
    [ -n "$deb" ] && gitlab deb "$deb"
    [ -n "$tarball$deb" ] || PATH=$tree/$BIN:$PATH gitlab installed ''
else
    lacks 'gitlab-ci-local (npm), node or rsync'
fi

# ---- packages, by the step that all stages share: as an ordinary user, and in containers ----
if [ -n "$tarball" ]; then
    at=$dir/ordinary
    project "$at" && cp -R ci/examples "$dir/examples" && cp "$tarball" "$dir/package.tar.gz"
    chmod a+x "$TMPDIR" "$dir" && chown -R 65534:65534 "$at" && chmod -R a+rX "$dir/examples" "$dir/package.tar.gz"
    step='cd "$1" && bin=$(RANKQUAKE_PACKAGE=$2/package.tar.gz "$2/examples/install" "$1/in") && PATH=$bin:$PATH CACHE=$1/kept SCENARIO=scenarios "$2/examples/step"'
    HOME=$at setpriv --reuid 65534 --regid 65534 --clear-groups bash -c "$step" - "$at" "$dir" >"$dir/said" 2>&1 </dev/null || fail 'an ordinary user, from the tarball'
    collected 'an ordinary user' "$at"
fi
# The image of make package, started by podman, or where podman cannot, by unshare(1) in the tree of that image: in a user namespace of
# its own, as an ordinary container is, without any right, and in the one case with no further user namespace to be had. There the old
# root stays at /mnt, for the image has no umount.
start() { # start ISOLATION FOLDER
    local lib rights=(--cap-drop all --security-opt no-new-privileges)
    [ "$1" = processes ] || rights=(--privileged)
    if [ -n "$by_podman" ]; then
        for lib in "${lent[@]}"; do rights+=(-v "$(realpath "$lib"):/usr/lib/${lib##*/}:ro"); done
        podman run --rm --network none -v "$2:/w" -v "$tree/ci/examples:/examples:ro" -w /w -e SCENARIO=scenarios \
            --entrypoint /examples/step "${rights[@]}" "$image"
        return
    fi
    rights=(--bounding-set=-all --inh-caps=-all --no-new-privs)
    [ "$1" = processes ] || rights=()
    unshare --user --map-root-user --mount --pid --net --ipc --uts --fork bash -c '
        set -e
        mount --bind "$1" "$1"
        for part in dev sys; do mount --rbind "/$part" "$1/$part"; done
        mount -t proc proc "$1/proc"
        mkdir -p "$1/w" "$1/examples"
        mount --bind "$2" "$1/w"
        mount --bind "$3" "$1/examples"
        ip link set lo up
        [ "$4" != processes ] || echo 0 >/proc/sys/user/max_user_namespaces
        cd "$1"
        pivot_root . mnt
        exec /usr/bin/env -i PATH=/usr/bin:/bin HOME=/tmp SCENARIO=scenarios /usr/bin/setpriv "${@:5}" /bin/sh -c "cd /w && exec /examples/step"' \
        - "$rootfs" "$2" "$tree/ci/examples" "$1" "${rights[@]}"
}
container() { # container NAME ISOLATION
    local at="$dir/container-$2"
    project "$at" && chmod -R a+rwX "$at"
    start "$2" "$at" >"$dir/said" 2>&1 </dev/null || fail "a container $1"
    collected "a container $1" "$at"
    grep -q "name=\"isolation\" value=\"$2\"" "$at/runs/junit.xml" || fail "a container $1: nodes are not $2"
}
by_podman='' rootfs=$dir/rootfs
# The image has no OpenBLAS, which ranktrain computes with: this host's is lent to it.
mapfile -t lent < <(ldconfig -p | sed -n 's/.* => \(.*\/lib\(openblas\.so\.0\|gfortran\.so\.5\|quadmath\.so\.0\|gcc_s\.so\.1\)\)$/\1/p' | awk -F/ '!had[$NF]++')
archive=$(ls "${PACKAGE_DIR:-build/package}"/rankquake-*-linux-"$(uname -m)"-image.tar 2>/dev/null | head -n 1)
if [ -n "$archive" ] && command -v podman >/dev/null && image=$(podman load -qi "$archive" 2>"$dir/said" | sed -n 's/^Loaded image: *//p') && [ -n "$image" ]; then
    if podman run --rm --network none --entrypoint /bin/true "$image" >"$dir/said" 2>&1; then
        by_podman=yes
    else
        lacks "podman cannot start a container here, so unshare does: $(tail -n 1 "$dir/said")"
        mounted=$(podman image mount "$image") && cp -a "$mounted" "$rootfs" && touch "$rootfs"/etc/{hosts,resolv.conf} && cp -L "${lent[@]}" "$rootfs/usr/lib"
        podman image unmount "$image" >/dev/null
    fi
    container 'without rights or user namespaces' processes
    container 'with user namespaces' namespaces
else
    lacks 'an image of make package, or podman'
fi

for why in ${missing[@]+"${missing[@]}"}; do echo "not run here: $why"; done
cd "$tree" || exit 1
[ "$asked" -gt 0 ] || { echo 'no runner is here'; exit 77; }
echo "$asked stages were run"
exit $failed
