# patience: how long agents wait for one that is silent, in tests that may meet a machine that stands still for a second
# or more, as one does that shares its processors. For --rdzv-conf, and as $..._map for job.rdzv_conf. To be sourced at
# the root of the tree.

# Where nobody falls silent: the default limits, without the long waits for more nodes.
patient=last_call_timeout=2s,admit=50ms
# Where somebody does: given up in 2.3 s; a second and a half without a processor ends nobody.
watchful=profile=fast,hb=300ms,fence=2s,hard=2100ms,suspect=2300ms
patient_map="{${patient//=/: }}" watchful_map="{${watchful//=/: }}"

# Whether all that stayed open in a run whose output this is did so because the harness itself had no processor for
# more than the fifth of a time that is judged: no machine that stands still can be asked whether others are quick.
only_harness_was_late() { # only_harness_was_late FILE
    local open
    open=$(grep -E '^  [?] ' "$1") && ! grep -qv 'but the harness itself was late by' <<<"$open"
}
# The same where nodes are on hosts, whose helpers had no processor.
only_hosts_were_late() { # only_hosts_were_late FILE
    local open
    open=$(grep -E '^  [?] ' "$1") && ! grep -qvE 'too close to tell|harness was late itself|harness itself was late' <<<"$open"
}
# What a run's output says is wrong, to be printed last: of a log of many tests often the end is all that is shown.
whats_wrong() { # whats_wrong FILE
    grep -E '^(broken|expected|seen|look at|  [?x]|  ✗) ' "$1"
}
