#!/usr/bin/env bash
# The JSON Schema of scenarios takes every scenario there is, and not the mistakes that people make; both are asked
# of somebody else's validator. The page of the language is what the tables say.
# deadline: 60 s
set -u
rq=$BIN/rankquake
# A page whose tables are empty becomes the page that we have; filled again it stays as it is.
sed '/^<!-- words: /,/^<!-- end -->/{/^<!-- /!d}' docs/scenario-language.md >"$TMPDIR/page.md"
"$rq" schema --fill "$TMPDIR/page.md" >"$TMPDIR/said" && grep -q 'page.md: filled from the tables' "$TMPDIR/said" || exit 1
diff docs/scenario-language.md "$TMPDIR/page.md" ||
    { echo 'docs/scenario-language.md is not what the tables say: rankquake schema --fill docs/scenario-language.md'; exit 1; }
"$rq" schema --fill "$TMPDIR/page.md" >"$TMPDIR/said" && grep -q 'page.md: is what the tables say' "$TMPDIR/said" || exit 1
"$rq" schema scenario >"$TMPDIR/schema.json" || exit 1
# The system's own Python has them where Debian installed them.
for python in python3 /usr/bin/python3; do
    "$python" -c 'import jsonschema, yaml' 2>/dev/null && break
    python=
done
[ -n "$python" ] || { echo 'no Python with jsonschema and yaml (python3-jsonschema, python3-yaml)'; exit 77; }
"$python" tests/live/schema.py "$TMPDIR/schema.json" scenarios "$rq"
