/* words: a command line in the making. Private to this room. */
#pragma once

#include "harness/launch/launcher.h"

struct words {
    struct arena *arena;
    const char **v; /* NULL-ended at any time */
    size_t n, cap;
};

void words_add(struct words *w, const char *word);
void words_add_all(struct words *w, const char *const *words); /* NULL: none */
void words_put(struct words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* job.run is a Python script, a module (-m), or any program. */
enum run_form { RUN_PROGRAM, RUN_SCRIPT, RUN_MODULE };
enum run_form run_form_of(const char *const *run);

/* The options that rankrun and torchrun share: nnodes, rendezvous, restarts. Spelled as every
 * version of torchrun knows them. */
void words_put_job(struct words *w, const struct launch *l);
/* The end of such a line: the job's command, with rankprobe where the launcher puts it. */
void words_put_worker(struct words *w, const struct launch *l);
/* The environment that goes with words_put_worker. */
const char *const *words_worker_env(struct arena *a, const struct launch *l);
/* The interpreter that Python scripts of the job are started with. */
const char *words_python(const struct plan *p);
