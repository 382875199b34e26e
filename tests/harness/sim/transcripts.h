/* transcripts: a schedule file of tests/harness/sim/transcripts as the text that stands beside it:
 * what it shows (the comment of its first line), the exchange, how the job ended. */
#pragma once

#include "base/buf.h"
#include "harness/sim/schedule.h"
#include "harness/sim/script.h"

#include <stdio.h>
#include <string.h>

static inline void transcripts_title(const char *path, struct buf *out) {
    char line[400] = "";
    FILE *f = fopen(path, "r");
    if (f && fgets(line, sizeof(line), f) && line[0] == '#')
        buf_printf(out, "%s\n", line + 2);
    if (f)
        fclose(f);
}

/* False when it is no schedule; what is wrong went to stderr. */
static inline bool transcripts_make(const char *path, struct buf *out) {
    struct diagnostics d = {0};
    struct sim_result r;
    struct script *s = script_read(path, &d);
    fputs(buf_str(&d.out), stderr);
    diagnostics_fini(&d);
    if (!s)
        return false;
    transcripts_title(path, out);
    sim_transcribe(&s->schedule, out, &r);
    buf_printf(out, "\n%s\n",
               r.violated                   ? r.text
               : r.outcome == SIM_SUCCEEDED ? "The job has succeeded."
                                            : "The job has failed.");
    script_free(s);
    return true;
}
