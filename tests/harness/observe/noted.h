/* noted: what is recorded, word for word, in what a played part says (played.h). */
#pragma once

#include "harness/observe/observe.h"
#include "tests/played.h"

static struct {
    struct history history;
    struct rounds rounds;
    struct recorder rec;
    void (*then)(const struct record *r, struct event_client *from); /* NULL: nothing */
} noted;

static inline void noted_record(void *arg, const struct record *r, struct event_client *from) {
    BUF_FINI struct buf line = {0};
    struct json_writer w = {.out = &line};
    (void)arg;
    record_put(r, &w);
    note("> %s", buf_str(&line));
    if (noted.then)
        noted.then(r, from);
}

static inline void noted_begin(void (*then)(const struct record *r, struct event_client *from)) {
    assert_int_equal(history_create(&noted.history, NULL, NULL), 0);
    rounds_init(&noted.rounds, true);
    noted.rec = (struct recorder){&noted.history, &noted.rounds, noted_record, NULL};
    noted.then = then;
}

static inline void noted_end(void) {
    history_fini(&noted.history);
    rounds_fini(&noted.rounds);
}
