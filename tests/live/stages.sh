#!/usr/bin/env bash
# The stages of ci/examples, each played in a repository of a user's: the shell of its steps runs as its server would start it, with the
# programs of this build, and leaves what the server collects. Their words are asked of actionlint and others where those are here
# (ci/consumers). tests/soak/stages.sh runs them under gitlab-ci-local, from packages and in containers.
# deadline: 240 s
set -u
. tests/live/runs.bash
python3 -c 'import yaml' 2>/dev/null || { echo 'python3-yaml is not installed'; exit 77; }
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY GITHUB_OUTPUT GITLAB_CI BUILDKITE JENKINS_URL
tree=$PWD examples=$PWD/ci/examples unasked=()
bin=$(cd "$BIN" && pwd)
PATH=$bin:$PATH
export HOME=$dir/home
mkdir -p "$HOME" "$dir/project/scenarios"

asks() { # asks KIND FILE
    local why
    why=$("$tree/ci/consumers" "$@" 2>&1)
    case $? in
    0) ;;
    77) unasked+=("$1: $(tail -n 1 <<<"$why")") ;;
    *) fail "$2: $why" ;;
    esac
}
asks action ci/examples/github/action.yml
asks workflow ci/examples/github/workflow.yml
asks jenkinsfile ci/examples/jenkins/Jenkinsfile
for file in ci/examples/*/*; do
    [ "$(wc -l <"$file")" -le 60 ] || fail "$file: more than a page"
done

cd "$dir/project" || exit 1
: >"$dir/said"
for name in passes fails; do
    cat >scenarios/$name.yaml <<END
scenario: $name
cluster: {nodes: 2}
job: {run: [ranktrain, --steps=12]}
timeline: [{when: {step: 5}, fault: worker-kill, on: n1/0}]
END
done
echo 'expect: {restarts: 3}' >>scenarios/fails.yaml
git init -q . && ln -s "$tree" .rankquake-source
mkdir "$dir/fakes"
cat >"$dir/fakes/buildkite-agent" <<'END'
#!/bin/sh
echo "$*" >>"$HOME/annotated"
cat >>"$HOME/annotated"
END
chmod +x "$dir/fakes/buildkite-agent"
plays() { # plays CODE KIND FILE NAME=VALUE...
    local code=$1 rc
    timeout 100 python3 "$tree/tests/live/stages.py" "$2" "$examples/$2/$3" "${@:4}" >"$dir/said" 2>&1 </dev/null
    rc=$?
    [ $rc = 4 ] && [ "$code" != 4 ] && { tail -n 1 "$dir/said"; exit 77; }
    [ $rc = "$code" ] || fail "$2 ${*:4}: exit $rc, not $code"
}

export GITHUB_STEP_SUMMARY=$dir/step.md
plays 0 github action.yml scenario=scenarios/passes.yaml budget=5m
grep -q '^output outcome=passed$' "$dir/said" || fail 'the action has no output'
grep -q '### ✅ RankQuake: scenarios/passes.yaml: passed' "$dir/step.md" || fail 'the step has no summary'
[ -s runs/junit.xml ] && [ -d .rankquake-cache/rankquake/control ] || fail 'the action left no reports or kept no cache'
plays 1 github action.yml scenario=scenarios
grep -q '^::error file=scenarios/fails.yaml,' "$dir/said" || fail 'the action made no annotation'
plays 0 github action.yml scenario=scenarios fail-on=broken cache=false
plays 64 github action.yml scenario=scenarios fail-on=sometimes
plays 1 github action.yml budget=1m
unset GITHUB_STEP_SUMMARY

rm -rf runs
plays 1 gitlab template.yml scenario=scenarios source=nowhere
[ -s runs/junit.xml ] && [ -s runs/gl-code-quality-report.json ] || fail 'GitLab finds no reports'
plays 0 gitlab template.yml scenario=scenarios/passes.yaml source=nowhere fail-on=inconclusive

plays 1 jenkins Jenkinsfile SCENARIO='scenarios/passes.yaml scenarios/fails.yaml'
grep -q '<testsuite name="fails" .*failures="1"' runs/junit.xml || fail 'Jenkins does not see the failure'
plays 0 jenkins Jenkinsfile SCENARIO=scenarios/passes.yaml

# ---- only what a change concerns: of two scenarios the one that fails is left out, whatever stage asks ----
user() { git -c user.name=x -c user.email=x@example.com "$@"; }
printf '%s\n' runs .rankquake-cache .rankquake-source >.gitignore
git add -A && user commit -qm begin && git tag before
echo '# another word' >>scenarios/passes.yaml && git add -A && user commit -qm 'Say more'
left() { grep -q 'left out fails (scenarios/fails.yaml): nothing that it reads has changed' "$dir/said" || fail "$1 does not leave out what has not changed"; }
plays 0 github action.yml scenario=scenarios changed=HEAD
left 'a commit that changes nothing'
plays 0 github action.yml scenario=scenarios changed=before
left GitHub
plays 0 gitlab template.yml scenario=scenarios source=nowhere cache=.rankquake-cache changed=before
left GitLab
plays 0 jenkins Jenkinsfile SCENARIO=scenarios CHANGED=before
left Jenkins
plays 1 jenkins Jenkinsfile SCENARIO=scenarios CHANGED=nowhere
grep -q 'git cannot tell what has changed since nowhere, so everything runs' "$dir/said" || fail 'a commit that is not there is not named'
plays 64 jenkins Jenkinsfile SCENARIO=scenarios CHANGED=--output=x
# A checkout of the newest commit alone is made whole first.
git clone -q --depth 1 "file://$PWD" "$dir/shallow" && cp -R .rankquake-cache "$dir/shallow" && ln -s "$tree" "$dir/shallow/.rankquake-source"
cd "$dir/shallow" || exit 1
plays 0 github action.yml scenario=scenarios changed="$(git -C "$dir/project" rev-parse before)"
left 'a shallow checkout'
cd "$dir/project" || exit 1
git update-ref refs/remotes/origin/main before

PATH=$dir/fakes:$PATH
plays 0 buildkite pipeline.yml BUILDKITE_PULL_REQUEST_BASE_BRANCH=main
left Buildkite
rm -rf "$HOME/annotated"
plays 1 buildkite pipeline.yml
[ "$(grep -c '^annotate --context rankquake-[01] --style' "$HOME/annotated")" = 2 ] || fail 'two jobs make two annotations'
[ "$(grep -cE '^\| [^|]* \| (passes|fails) \|' "$HOME/annotated")" = 2 ] || fail 'the two jobs have not run each scenario once'

# ---- how it comes to a runner ----
PATH=${PATH//"$bin:"/}
say=$(RANKQUAKE_PACKAGE=$dir/none.deb "$examples/install" "$dir/into" 2>&1)
[ $? = 64 ] && [[ $say == *"there is no $dir/none.deb"* ]] || fail "a package that is not there: $say"
mkdir -p "$dir/made/rankquake-1/bin" && cp "$bin/rankquake" "$dir/made/rankquake-1/bin"
tar -C "$dir/made" -czf "$dir/made.tar.gz" rankquake-1
[ "$(RANKQUAKE_PACKAGE=$dir/made.tar.gz "$examples/install" "$dir/into" 2>/dev/null)" = "$dir/into/bin" ] || fail 'a tarball is not unpacked'
head -c 1000 "$dir/made.tar.gz" >"$dir/short.tar.gz"
say=$(RANKQUAKE_PACKAGE=$dir/short.tar.gz "$examples/install" "$dir/into2" 2>&1)
[ $? = 3 ] && [[ $say == *'cannot be unpacked: is it whole?'* ]] || fail "a tarball that is cut off: $say"
for why in ${unasked[@]+"${unasked[@]}"}; do echo "not asked: $why"; done
cd "$tree" || exit 1
exit $failed
