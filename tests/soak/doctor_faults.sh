#!/usr/bin/env bash
# doctor tries every fault, as root and as another user, in namespaces and on processes: what works as root in namespaces is all
# there is; whatever cannot be had elsewhere has a reason and a fix; and nothing is left. Prints the table of docs/measurements.md.
# deadline: 3600 s
# alone: it looks for whatever is left on the host
set -u
dir=$TMPDIR/doctor
mkdir "$dir" && chmod 755 "$TMPDIR" && cp -R "$(realpath "$BIN")" "$dir/bin" || exit 1
chmod -R a+rX "$dir"
BIN=$dir/bin
out=$TMPDIR/out
. tests/live/traces.bash
export TMPDIR=$dir/tmp
mkdir -m 1777 "$TMPDIR"
doctor=$dir/bin/rankquake
bad=0
all=$("$doctor" list faults | wc -l)

users=$(id -u)
[ "$users" = 0 ] && users='0 65534'
for user in $users; do
    as=()
    [ "$user" = "$(id -u)" ] || as=(setpriv "--reuid=$user" "--regid=$user" --clear-groups)
    for kind in namespaces processes; do
        label=$user-$kind
        SECONDS=0
        "${as[@]}" "$doctor" doctor --faults all --isolation $kind --format json >"$dir/$label.json" 2>"$dir/said" ||
            { echo "$label: exit $?"; cat "$dir/said"; bad=1; }
        echo "$label: $SECONDS s"
        [ -z "$(ls -A "$TMPDIR")" ] || { echo "$label: left: $(ls "$TMPDIR")"; bad=1; }
        nothing_left || { echo "$label: something is left"; bad=1; }
    done
done
python3 - "$all" "$dir"/*.json <<'END' || bad=1
import json, os, sys
bad, tables = 0, {}
for path in sys.argv[2:]:
    label = os.path.basename(path)[:-5]
    said = json.load(open(path))
    tables[label] = {f['name']: f for f in said['faults']}
    assert said['tried'] and len(tables[label]) == int(sys.argv[1]), label
    for f in said['faults']:
        if f['here'] == 'open' or f['here'] == 'cannot' and not (f['why'] and f['fix']):
            print(f'{label}: {f["name"]} is {f["here"]}: {f["why"]}')
            bad = 1
        if f['name'].startswith('slurm-'): # there is a scheduler where a scenario asks for one
            bad |= f['here'] != 'cannot' or 'no scheduler has started the job' not in f['why']
        elif f['here'] == 'cannot' and (label == '0-namespaces' or 'nothing showed it' in f['why']):
            print(f'{label}: {f["name"]} cannot be had: {f["why"]}')
            bad = 1
labels = sorted(tables)
print('| | works | works with less | cannot |\n|---|---|---|---|')
for label in labels:
    n = [sum(f['here'] == word for f in tables[label].values()) for word in ('works', 'works with less', 'cannot')]
    print(f'| {label} | {n[0]} | {n[1]} | {n[2]} |')
print(f'\n| fault | {" | ".join(labels)} |\n|---|{"---|" * len(labels)}')
for name in tables[labels[0]]:
    words = [tables[l][name]['here'] for l in labels]
    if any(w != 'works' for w in words):
        print(f'| `{name}` | {" | ".join(words)} |')
sys.exit(bad)
END
exit $bad
