/* subject: the program that a trial strikes: a worker of rankrun that does a little of all that faults
 * are about. It exchanges bytes with its peer by TCP and UDP, connects anew and asks for a name each
 * time, has a child and a second thread, announces a region of its memory, reads the clock and makes
 * steps. It reads in the run's history how far its fault has come, says `shown` when that has been
 * in force for long enough, and goes on until it is over and both have reached each other again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct subject_task {
    const char *history; /* of the run; the line of its one fault has the id TRIAL_ID */
    bool paces;          /* says when the fault may be undone */
    bool lasts;          /* it is undone; else what shows it is all that is waited for */
    bool wants; /* once it is in force: processor time, memory and processes, all it can get */
    bool fails; /* once it is in force: ends with 1, and goes on when it is started again */
    const char *saves;   /* in this directory, again and again; NULL: it saves nothing */
    const char *asks;    /* for the address of this name, again and again; NULL: for its master's */
    int64_t patience_ns; /* it is in force for so long where nothing shows it before */
};

#define TRIAL_ID "it"

/* The exit status: 0, or 9 when nothing went on after the fault was undone. */
int subject_run(const struct subject_task *s);
