#include "harness/observe/sayings.h"

#include "base/buf.h"
#include "base/str.h"
#include "base/sys/clock.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 16 << 20, LINE_MAX_BYTES = 4096, SAID_MAX = 2000 };

struct sayings_tally {
    int64_t lines, said;
    bool whole; /* all of it was looked through */
};

/* Who starts agents on other hosts shows what they say behind "[HOST] ": of their node, not of this. */
static bool is_of_another(const char *line, const char *at) {
    return at >= line + 2 && at[-1] == ' ' && at[-2] == ']';
}

/* Where in the line it begins; NULL: it says nothing of the job, or (*ret_other) of another node. */
static const char *saying_in(const char *line, bool *ret_other) {
    static const char *const begins[] = {
        "rankrun: round ", "rankrun: first failure of round ",        "rankrun: run \"",
        "{\"time\":\"2",   "{\"name\":\"torchelastic.worker.status.", NULL};
    for (const char *const *b = begins; *b; b++) {
        const char *at = strstr(line, *b);
        if (at && is_of_another(line, at))
            *ret_other = true;
        else if (at)
            return at;
    }
    return NULL;
}

static void record_line(struct recorder *rec, const char *node, const char *line) {
    struct json_writer *w = recorder_begin(rec, clock_monotonic_ns(), SOURCE_LAUNCHER, "said");
    json_put_string(w, "node", node);
    json_put_string(w, "from", "output");
    json_put_stringn(w, "line", line, strnlen(line, LINE_MAX_BYTES));
    recorder_end(rec, NULL);
}

static int read_all(int fd, struct buf *text, bool *whole, struct err *err) {
    char block[1 << 14];
    off_t at = 0;
    *whole = true;
    for (;;) {
        ssize_t n = pread(fd, block, sizeof(block), at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, -errno, "read what the agent has printed");
        if (n == 0)
            return 0;
        if (text->len + (size_t)n > TEXT_MAX) {
            *whole = false;
            return 0;
        }
        buf_put(text, block, (size_t)n);
        at += n;
    }
}

int sayings_record(struct recorder *rec, const char *node, int fd, struct err *err) {
    BUF_FINI struct buf text = {0};
    struct sayings_tally t = {0};
    int code = read_all(fd, &text, &t.whole, err);
    if (code < 0)
        return code;
    for (char *rest = text.data, *line; rest && (line = strsep(&rest, "\n"));) {
        bool other = false;
        const char *said = saying_in(line, &other);
        t.lines++;
        t.whole &= !other; /* its own agent's may be behind such a name too */
        if (!said)
            continue;
        t.whole &= t.said < SAID_MAX;
        if (t.said++ < SAID_MAX)
            record_line(rec, node, said);
    }
    struct json_writer *w = recorder_begin(rec, clock_monotonic_ns(), SOURCE_HARNESS, "heard");
    json_put_string(w, "node", node);
    json_put_i64(w, "lines", t.lines);
    json_put_i64(w, "said", t.said);
    json_put_bool(w, "whole", t.whole);
    recorder_end(rec, NULL);
    return 0;
}
