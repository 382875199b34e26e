#include "harness/certify/acts.h"

#include "base/sys/clock.h"
#include "base/sys/file.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

int acts_open(struct acts *ret, const struct folder *in, struct err *err) {
    *ret = (struct acts){.fd = folder_append(in, "acts.jsonl", err)};
    return ret->fd < 0 ? ret->fd : 0;
}

void acts_time(int64_t wall_ns, char ret[24]) {
    time_t t = (time_t)(wall_ns / 1000000000);
    struct tm tm;
    gmtime_r(&t, &tm);
    strftime(ret, 24, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

void acts_begin(struct acts *a, struct json_writer *w, const char *act) {
    char now[24];
    (void)a;
    acts_time(clock_realtime_ns(), now);
    json_object(w, NULL);
    json_put_string(w, "at", now);
    json_put_string(w, "act", act);
}

void acts_end(struct acts *a, struct json_writer *w) {
    json_end_object(w);
    buf_putc(w->out, '\n');
    struct err *err = a->failed.code ? NULL : &a->failed;
    if (file_write_all(a->fd, w->out->data, w->out->len, err) == 0 && fdatasync(a->fd) < 0)
        err_set(err, -errno, "keep acts.jsonl");
}

void acts_say(struct acts *a, const char *act, const char *key, const char *value) {
    BUF_FINI struct buf line = {0};
    struct json_writer w = {.out = &line};
    acts_begin(a, &w, act);
    json_put_string(&w, key, value);
    acts_end(a, &w);
}

void acts_close(struct acts *a) {
    file_close(&a->fd);
}
