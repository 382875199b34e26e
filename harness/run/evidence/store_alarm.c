/* Our own client's reading: the etcd has raised the alarm NOSPACE. */
#include "harness/run/evidence/store_read.h"

EVIDENCE_IS_READ(store_alarm, "alarms", "alarms", after > before,
                 "the store has raised the alarm NOSPACE",
                 "the store has not raised the alarm NOSPACE: it was not full yet");
