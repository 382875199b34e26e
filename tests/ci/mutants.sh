#!/usr/bin/env bash
# Every planted bug of launcher, job, its saver and harness still finds its place in the sources: what does not apply any more
# is found here, and not only by the hour of `make mutants`. (Those of the core: tests/live/core-mutants.sh.)
set -u
command -v git >/dev/null || { echo 'git is missing, which applies the patches'; exit 77; }
failed=0
for patch in tests/mutants/{rankrun,ranktrain,harness,savers}/*.patch; do
    git apply --check -C1 "$patch" || { echo "$patch does not apply any more: plant it anew"; failed=1; }
done
exit $failed
