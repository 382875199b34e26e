#!/usr/bin/env bash
# RankQuake as it is installed: `make install` into a folder, from which it finds its scenarios whatever directory one is in and
# plays one; manual pages without a warning; command lines that bash, zsh and fish complete; and nothing left by `make uninstall`.
set -u
dir=$TMPDIR/installed
mkdir "$dir"
tree=$PWD
. tests/live/says.bash
to=$dir/root/usr
DESTDIR=$dir/root PREFIX=/usr ci/package/install >"$dir/said" 2>&1 || fail 'ci/package/install failed'
# A second one is the same, and two are one.
DESTDIR=$dir/again PREFIX=/usr ci/package/install >"$dir/said" 2>&1 || fail 'ci/package/install failed again'
DESTDIR=$dir/again PREFIX=/usr ci/package/install >"$dir/said" 2>&1 || fail 'ci/package/install over itself failed'
diff -r "$dir/root" "$dir/again" >"$dir/said" 2>&1 || fail 'two installations differ'

mkdir "$dir/elsewhere" && cd "$dir/elsewhere" || exit 1
export PATH=$to/bin:$PATH
rq=$to/bin/rankquake

# ---- scenarios by name, files that are there first, and what is neither ----
says 0 "$to/share/rankquake/scenarios/tour.yaml" 'list scenarios' "$rq" list scenarios
says 0 'scenarios/tour.yaml: valid' 'a scenario by its name' "$rq" lint tour
says 0 'restart/worker-killed.yaml: valid' 'as it stands in the manual' "$rq" lint scenarios/restart/worker-killed.yaml
says 0 'network/one-way.yaml: valid' 'a folder of them' "$rq" lint network
echo 'job: 3' >tour
says 64 'tour:1:' 'a file of that name comes first' "$rq" lint tour
rm tour
says 64 'no-such' 'no such scenario' "$rq" lint no-such
says 64 '\.\./smoke' 'none by a way out of the folder' "$rq" lint ../scenarios/../smoke
says 64 'there is no verb "nix"' 'a page of no verb' "$rq" help --man nix
says 64 'bash, fish or zsh' 'no such shell' "$rq" help --complete csh
says 64 'bash, fish or zsh' 'no such shell of rankrun' rankrun --complete=csh
says 64 'bash, fish or zsh' 'no such shell of ranktrain' ranktrain --complete=csh

# ---- a live run ----
"$rq" run restart/worker-killed --out runs >"$dir/said" 2>&1
rc=$?
case $rc in
0) [ -s runs/worker-killed-1-*/report.html ] || fail 'the run has left no report' ;;
4) echo "no run here: $(tail -n 1 "$dir/said")" ;;
*) fail "run restart/worker-killed: exit $rc" ;;
esac

# ---- manual pages ----
pages=("$to"/share/man/man1/*.1)
verbs=$("$rq" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
for verb in $verbs; do
    [ -s "$to/share/man/man1/rankquake-$verb.1" ] || { : >"$dir/said"; fail "no page of the verb $verb"; }
    # Each option that --help names is in it.
    for option in $("$rq" help "$verb" | sed -n 's/^  \(--[a-z-]*\) .*/\1/p'); do
        grep -qF -- "\\fB${option//-/\\-}\\fR" "$to/share/man/man1/rankquake-$verb.1" || { : >"$dir/said"; fail "the page of $verb misses $option"; }
    done
done
[ ${#pages[@]} -ge 20 ] || { printf '%s\n' "${pages[@]}" >"$dir/said"; fail 'too few pages'; }
if command -v groff >/dev/null; then
    for page in "${pages[@]}"; do
        LC_ALL=C.UTF-8 groff -man -Tutf8 -ww "$page" 2>"$dir/said" >"$dir/page"
        [ ! -s "$dir/said" ] || fail "groff warns of $page"
        [ "$(wc -l <"$dir/page")" -gt 10 ] || fail "$page is empty"
    done
else
    echo 'no groff: the pages were not set'
fi
if command -v mandoc >/dev/null; then
    # A date would differ from build to build.
    mandoc -T lint -W warning "${pages[@]}" 2>&1 | grep -v 'missing date' >"$dir/said"
    [ ! -s "$dir/said" ] || fail 'mandoc warns of a page'
else
    echo 'no mandoc: the pages were not linted by it'
fi

# ---- shells ----
completes() { # completes SHELL LINE COMPLETED: of what $dir/shell says
    grep -qF -- "$2 -> $3" "$dir/shell" || { cp "$dir/shell" "$dir/said"; fail "$1 does not complete '$2' to '$3'"; }
}
lines=('rankquake shri' 'rankquake run --form' 'rankquake run --format=juni' 'rankquake run restart/worker-kil' 'rankrun --rdzv-back'
    'rankrun --nproc-per-node gp' 'ranktrain --checkpoint-ev')
bash --norc "$tree/tests/live/completed.bash" "$to/share/bash-completion/completions" "${lines[@]}" >"$dir/shell" 2>&1
completes bash 'rankquake shri' shrink
completes bash 'rankquake run --form' --format
completes bash 'rankquake run --format=juni' junit
completes bash 'rankquake run restart/worker-kil' restart/worker-killed
completes bash 'rankrun --rdzv-back' --rdzv-backend
completes bash 'rankrun --nproc-per-node gp' gpu
completes bash 'ranktrain --checkpoint-ev' --checkpoint-every
if command -v zsh >/dev/null && zsh -fc 'zmodload zsh/zpty' 2>/dev/null; then
    TERM=dumb timeout 60 zsh -f "$tree/tests/live/completed.zsh" "$to/share/zsh/site-functions" "${lines[@]}" >"$dir/shell" 2>&1
    completes zsh 'rankquake shri' 'rankquake shrink'
    completes zsh 'rankquake run --form' 'rankquake run --format'
    completes zsh 'rankquake run --format=juni' 'rankquake run --format=junit'
    completes zsh 'rankquake run restart/worker-kil' 'rankquake run restart/worker-killed'
    completes zsh 'rankrun --rdzv-back' 'rankrun --rdzv-backend'
    completes zsh 'rankrun --nproc-per-node gp' 'rankrun --nproc-per-node gpu'
    completes zsh 'ranktrain --checkpoint-ev' 'ranktrain --checkpoint-every'
else
    echo 'no zsh: its completions were not tried'
fi
if command -v fish >/dev/null; then
    for line in "${lines[@]}"; do
        HOME=$dir XDG_CONFIG_HOME=$dir timeout 60 fish --no-config -c "source $to/share/fish/vendor_completions.d/${line%% *}.fish
            complete -C '$line'" 2>&1 | sed "s|^|$line -> |"
    done >"$dir/shell"
    completes fish 'rankquake shri' $'shrink\t'
    completes fish 'rankquake run --form' $'--format\t'
    completes fish 'rankquake run --format=juni' $'--format=junit\t'
    completes fish 'rankquake run restart/worker-kil' restart/worker-killed
    completes fish 'rankrun --rdzv-back' $'--rdzv-backend\t'
    completes fish 'rankrun --nproc-per-node gp' gpu
    completes fish 'ranktrain --checkpoint-ev' $'--checkpoint-every\t'
else
    echo 'no fish: its completions were not tried'
fi

# ---- and away again ----
cd "$tree" || exit 1
DESTDIR=$dir/root PREFIX=/usr ci/package/install --remove >"$dir/said" 2>&1 || fail 'ci/package/install --remove failed'
find "$dir/root" -not -type d >"$dir/said"
[ ! -s "$dir/said" ] || fail 'make uninstall leaves something'
exit $bad
