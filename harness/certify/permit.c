#include "harness/certify/permit.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "faults/fault.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DENY_MAX = 1 << 20, DAY = 24 * 60, ALL_DAYS = 0x7f };

/* ---- deny lists ---- */

/* An address and how many of its bits count. */
struct range {
    int family, bits;
    unsigned char v[16];
};

static bool read_range(const char *text, struct range *ret) {
    char address[64];
    const char *slash = strchr(text, '/');
    size_t n = slash ? (size_t)(slash - text) : strlen(text);
    int64_t bits;
    if (n >= sizeof(address))
        return false;
    memcpy(address, text, n);
    address[n] = '\0';
    *ret = (struct range){.family = strchr(address, ':') ? AF_INET6 : AF_INET};
    int most = ret->family == AF_INET6 ? 128 : 32;
    if (inet_pton(ret->family, address, ret->v) != 1)
        return false;
    ret->bits = most;
    if (slash && !str_to_i64(slash + 1, 0, most, &bits))
        return false;
    ret->bits = slash ? (int)bits : most;
    return true;
}

static bool in_range(const char *address, const struct range *r) {
    unsigned char v[16];
    int whole = r->bits / 8, rest = r->bits % 8;
    if (inet_pton(r->family, address, v) != 1 || memcmp(v, r->v, (size_t)whole) != 0)
        return false;
    return !rest || (v[whole] ^ r->v[whole]) >> (8 - rest) == 0;
}

int permit_deny(struct permit *p, const char *text, struct err *err) {
    struct range r;
    bool named = (str_starts(text, "host=") && text[5]) || (str_starts(text, "user=") && text[5]);
    if (!named && !(str_starts(text, "address=") && read_range(text + 8, &r)))
        return err_say(err, -EINVAL,
                       "%s: write host=NAME (with * and ?), user=NAME or address=ADDRESS, as in "
                       "address=10.1.0.0/16",
                       text);
    texts_add(&p->deny, "%s", text);
    return 0;
}

int permit_deny_file(struct permit *p, const char *path, struct err *err) {
    ARENA_FINI struct arena a = {0};
    BUF_FINI struct buf text = {0};
    int r = file_read_plain(path, DENY_MAX, &text, err);
    char **lines = str_split(&a, buf_str(&text), '\n', NULL);
    for (size_t i = 0; lines[i] && r == 0; i++) {
        char *line = lines[i] + strspn(lines[i], " \t");
        line[strcspn(line, " \t\r")] = '\0';
        if (*line && *line != '#' && (r = permit_deny(p, line, err)) < 0)
            err_wrap(err, "%s:%zu", path, i + 1);
    }
    return r;
}

bool permit_allows_host(const struct permit *p, const char *host, const char *user,
                        const char *const *addresses, const char **ret_by) {
    for (size_t i = 0; i < p->deny.n; i++) {
        const char *text = p->deny.v[i];
        struct range r;
        bool hit = str_starts(text, "host=")   ? fnmatch(text + 5, host, 0) == 0
                   : str_starts(text, "user=") ? str_eq(text + 5, user)
                                               : false;
        if (str_starts(text, "address=") && read_range(text + 8, &r))
            for (const char *const *at = addresses; at && *at; at++)
                hit |= in_range(*at, &r);
        if (hit) {
            *ret_by = text;
            return false;
        }
    }
    return true;
}

/* ---- windows ---- */

static int read_day(const char *s, size_t n) {
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    for (int i = 0; i < 7; i++)
        if (n == 3 && strncasecmp(s, days[i], 3) == 0)
            return i;
    return -1;
}

/* "Mon-Fri", "Sat,Sun": bits; 0: it is none. */
static unsigned read_days(const char *s, size_t n) {
    unsigned days = 0;
    for (size_t at = 0; at < n;) {
        size_t len = strcspn(s + at, ", "), dash = strcspn(s + at, "-");
        bool range = dash < len;
        int first = read_day(s + at, range ? dash : len);
        int last = range ? read_day(s + at + dash + 1, len - dash - 1) : first;
        if (first < 0 || last < 0)
            return 0;
        for (int d = first;; d = (d + 1) % 7) {
            days |= 1U << d;
            if (d == last)
                break;
        }
        at += len + 1;
    }
    return days;
}

int permit_window(struct permit *p, const char *text, struct err *err) {
    const char *blank = strrchr(text, ' '), *times = blank ? blank + 1 : text;
    int h1, m1, h2, m2, end = 0;
    struct permit_window w = {.text = text,
                              .days = blank ? read_days(text, (size_t)(blank - text)) : ALL_DAYS};
    bool good = sscanf(times, "%2d:%2d-%2d:%2d%n", &h1, &m1, &h2, &m2, &end) == 4 && !times[end] &&
                h1 >= 0 && h1 < 24 && m1 >= 0 && m1 < 60 && h2 >= 0 && h2 <= 24 && m2 >= 0 &&
                m2 < 60 && h2 * 60 + m2 <= DAY && w.days;
    if (!good || h1 * 60 + m1 == h2 * 60 + m2)
        return err_say(
            err, -EINVAL,
            "%s: write FROM-TO, as in 22:00-06:00, with days in front where they matter: "
            "\"Sat,Sun 00:00-24:00\", \"Mon-Fri 22:00-06:00\"",
            text);
    w.from = h1 * 60 + m1;
    w.to = h2 * 60 + m2;
    mem_push(p->windows, p->windows_n) = w;
    return 0;
}

/* Minutes that it is open still; 0: it is not. */
static int minutes_left(const struct permit_window *w, int day, int minute) {
    bool over = w->to <= w->from; /* beyond midnight */
    int yesterday = (day + 6) % 7;
    if (w->days >> day & 1 && minute >= w->from && (over || minute < w->to))
        return over ? DAY - minute + w->to : w->to - minute;
    if (over && w->days >> yesterday & 1 && minute < w->to)
        return w->to - minute;
    return 0;
}

bool permit_is_open(const struct permit *p, int64_t wall_ns, int64_t *ret_left_ns) {
    time_t now = (time_t)(wall_ns / 1000000000);
    struct tm t;
    int left = 0;
    *ret_left_ns = -1;
    if (!p->windows_n)
        return true;
    localtime_r(&now, &t);
    for (size_t i = 0; i < p->windows_n; i++) {
        int m = minutes_left(&p->windows[i], t.tm_wday, t.tm_hour * 60 + t.tm_min);
        left = m > left ? m : left;
    }
    *ret_left_ns = ((int64_t)left * 60 - t.tm_sec) * 1000000000;
    return left > 0;
}

/* ---- plans ---- */

static bool is_fault(const struct planned_entry *e) {
    return e->fault;
}

/* What is done to the node of a store is done to all who use that. */
enum fault_reach permit_reach_of(const struct planned_entry *e) {
    enum fault_reach own = fault_reach(e->fault->name);
    return e->entry->on.what == TARGET_STORES ? REACH_SHARED : own;
}

enum fault_reach permit_reach(const struct plan *plan) {
    enum fault_reach most = REACH_JOB;
    for (size_t i = 0; i < plan->entries_n; i++) {
        const struct planned_entry *e = &plan->entries[i];
        if (is_fault(e) && permit_reach_of(e) > most)
            most = permit_reach_of(e);
    }
    return most;
}

void permit_check(const struct permit *p, const struct plan *plan, struct texts *ret) {
    for (size_t i = 0; i < plan->entries_n; i++) {
        const struct planned_entry *e = &plan->entries[i];
        if (!is_fault(e))
            continue;
        enum fault_reach reach = permit_reach_of(e);
        if (reach > p->most)
            texts_add(ret,
                      "%s: %s (%s) is of class %s, and %s is the most that is allowed: --allow %s",
                      plan->scenario->name, e->fault->name, e->entry->id, fault_reach_names[reach],
                      fault_reach_names[p->most], fault_reach_names[reach]);
        if (p->fault_ns && e->entry->for_ns > p->fault_ns)
            texts_add(ret,
                      "%s: %s (%s) is meant to last %.3g s, and --max-fault-time allows %.3g s",
                      plan->scenario->name, e->fault->name, e->entry->id,
                      (double)e->entry->for_ns / 1e9, (double)p->fault_ns / 1e9);
    }
}

void permit_put(const struct permit *p, struct json_writer *w, const char *key) {
    json_object(w, key);
    json_put_string(w, "most", fault_reach_names[p->most]);
    json_put_strings(w, "deny", texts_list(&p->deny));
    json_put_known(w, "max_concurrent_faults", p->faults > 0, p->faults);
    json_put_known(w, "max_fault_ms", p->fault_ns > 0, p->fault_ns / 1000000);
    json_put_known(w, "max_time_ms", p->total_ns > 0, p->total_ns / 1000000);
    json_array(w, "windows");
    for (size_t i = 0; i < p->windows_n; i++)
        json_put_string(w, NULL, p->windows[i].text);
    json_end_array(w);
    json_end_object(w);
}

void permit_fini(struct permit *p) {
    texts_fini(&p->deny);
    free(p->windows);
}
