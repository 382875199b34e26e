# patience: how long agents wait for one that is silent, in tests that ask nothing of it: a machine that stands still
# for 1.5 s, as one does that shares its processors, ends nobody (and what the store answers within hb is heard). All else
# is as with profile=fast. To be sourced at the root of the tree.

patient=profile=fast,hb=500ms,fence=2s,hard=2100ms,suspect=2300ms # for --rdzv-conf
patient_map="{${patient//=/: }}"                         # for job.rdzv_conf

# Whether all that stayed open in a run whose output this is did so because the harness itself had no processor for
# more than the fifth of a time that is judged: no machine that stands still can be asked whether others are quick.
only_harness_was_late() { # only_harness_was_late FILE
    local open
    open=$(grep -E '^  [?] ' "$1") && ! grep -qv 'but the harness itself was late by' <<<"$open"
}
