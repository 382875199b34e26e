/* status: the verb `rankrun status`, which tells a job as its keys in the store say it. It writes
 * nothing there. */
#pragma once

struct options;
struct job_status;

enum { STATUS_FOUND = 0, STATUS_NO_RUN = 1, STATUS_NO_STORE = 69 };

/* Reads the job, listens for two beats' time whether its members go on beating, prints it on
 * stdout. Returns the exit code, STATUS_...; what is wrong is said on stderr. */
int status_run(const struct options *o);
/* The same of a job over torchelastic's legacy rendezvous; 64, too: an etcd without its v2 API. */
int status_run_legacy(const struct options *o);

/* For people, and as one line of JSON. */
void status_print_text(const struct job_status *s);
void status_print_json(const struct job_status *s);
