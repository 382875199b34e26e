#!/usr/bin/env bash
# crashpoints finds nothing in what ranks save together that are asked to end: fsdp, in parts. All modes, and more states:
# tests/soak/crashpoints_modes.sh.
# deadline: 120 s
STATES=6 ROWS=fsdp-asked exec bash tests/soak/crashpoints_modes.sh
