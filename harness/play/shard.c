#include "harness/play/shard.h"

#include "base/mem.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "harness/play/budget.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_MAX = 10000, TIMES_MAX = 16 << 20 };
static const int64_t RUNS_MAX = 1000000; /* "until one fails" is as long as that */

struct shard_piece {
    size_t at; /* in the selection */
    int64_t cost_ns;
    int64_t part;
};

bool shard_read(const char *text, struct shard *ret) {
    ARENA_FINI struct arena a = {0};
    char **two = str_split(&a, text, '/', NULL);
    return two[0] && two[1] && !two[2] && str_to_i64(two[1], 1, PARTS_MAX, &ret->parts) &&
           str_to_i64(two[0], 1, ret->parts, &ret->part);
}

/* ---- times ---- */

static void put_name(const struct selected *l, struct buf *out) {
    BUF_FINI struct buf sets = {0};
    for (const char *const *s = l->sets; s && *s; s++)
        buf_printf(&sets, "%s%s", sets.len ? " " : "", *s);
    printable_puts(out, l->scenario->name);
    buf_putc(out, '\t');
    printable_puts(out, buf_str(&sets));
}

void shard_put_times(const struct selection *s, struct buf *out) {
    int64_t ns;
    for (size_t i = 0; i < s->n; i++) {
        if (!budget_measured(&s->v[i], &ns))
            continue;
        buf_printf(out, "%" PRId64 "\t", ns / 1000000);
        put_name(&s->v[i], out);
        buf_putc(out, '\n');
    }
}

static bool is_time(const char *line) {
    ARENA_FINI struct arena a = {0};
    char **words = str_split(&a, line, '\t', NULL);
    int64_t ms;
    return words[0] && words[1] && *words[1] && str_to_i64(words[0], 0, INT64_MAX / 1000000, &ms);
}

int shard_read_times(struct shard *h, const char *path, struct err *err) {
    BUF_FINI struct buf text = {0};
    ARENA_FINI struct arena a = {0};
    int code = file_read_plain(path, TIMES_MAX, &text, err);
    char **lines = code == 0 ? str_split(&a, buf_str(&text), '\n', NULL) : NULL;
    for (size_t i = 0; code == 0 && lines[i]; i++) {
        if (*lines[i] && !is_time(lines[i]))
            code = err_say(err, -EINVAL,
                           "%s:%zu: \"%.60s\" is no time of a scenario (MS, a tab, NAME); make the "
                           "file anew with rankquake cache times",
                           path, i + 1, lines[i]);
        else if (*lines[i])
            texts_add(&h->times, "%s", lines[i]);
    }
    return code;
}

/* -1: the file does not have it. */
static int64_t time_of(const struct shard *h, const struct selected *l) {
    BUF_FINI struct buf name = {0};
    put_name(l, &name);
    for (size_t i = 0; i < h->times.n; i++) {
        const char *tab = strchr(h->times.v[i], '\t');
        if (str_eq(tab + 1, buf_str(&name)))
            return strtoll(h->times.v[i], NULL, 10) * 1000000;
    }
    return -1;
}

void shard_fini(struct shard *h) {
    texts_fini(&h->times);
}

/* ---- parts ---- */

static int by_cost(const void *a, const void *b) {
    const struct shard_piece *x = a, *y = b;
    if (x->cost_ns != y->cost_ns)
        return x->cost_ns > y->cost_ns ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

static void deal(struct shard_piece *v, size_t n, int64_t parts) {
    int64_t *load = mem_array(int64_t, (size_t)parts);
    for (size_t i = 0; i < n; i++) {
        int64_t least = 0;
        for (int64_t k = 1; k < parts; k++)
            if (load[k] < load[least])
                least = k;
        v[i].part = least + 1;
        load[least] += v[i].cost_ns;
    }
    free(load);
}

/* Two machines that disagree in anything have another name. */
static void name_split(struct shard *h, const struct selection *s, const struct shard_piece *v) {
    struct sha256 hash;
    char hex[65];
    sha256_init(&hash);
    sha256_update(&hash, &h->parts, sizeof(h->parts));
    for (size_t i = 0; i < s->n; i++) {
        const char *name = s->v[v[i].at].scenario->name;
        sha256_update(&hash, name, strlen(name) + 1);
        sha256_update(&hash, &v[i].cost_ns, sizeof(v[i].cost_ns));
    }
    sha256_hex(&hash, hex);
    str_copy(h->split, sizeof(h->split), hex);
}

static void keep(struct shard *h, struct selection *s, const struct shard_piece *v) {
    size_t n = 0;
    bool *mine = mem_array(bool, s->n + 1);
    for (size_t i = 0; i < s->n; i++)
        mine[v[i].at] = v[i].part == h->part;
    for (size_t i = 0; i < s->n; i++) {
        if (mine[i]) {
            s->v[n++] = s->v[i];
            continue;
        }
        plan_free(s->v[i].plan);
        scenario_free(s->v[i].scenario);
    }
    s->n = h->kept = n;
    free(mine);
}

static void tell(const struct shard *h, const struct texts *guessed, int64_t mine_ns,
                 int64_t all_ns, FILE *out) {
    fprintf(out,
            "shard %" PRId64 "/%" PRId64 ": %zu of %zu scenarios, about %" PRId64 " s of %" PRId64
            " s (split %s: all shards must say the same)\n",
            h->part, h->parts, h->kept, h->all, mine_ns / 1000000000, all_ns / 1000000000,
            h->split);
    for (size_t i = 0; i < guessed->n; i++)
        fprintf(out, "%s%s",
                i ? ", " : "--times has none of these, so theirs are guessed: ", guessed->v[i]);
    if (guessed->n)
        fputc('\n', out);
}

void shard_keep(struct shard *h, struct selection *s,
                int64_t (*runs)(const void *arg, const struct selected *l), const void *arg,
                FILE *out) {
    struct shard_piece *v = mem_array(struct shard_piece, s->n + 1);
    TEXTS_FINI struct texts guessed = {0};
    int64_t mine_ns = 0, all_ns = 0;
    for (size_t i = 0; i < s->n; i++) {
        int64_t times = runs(arg, &s->v[i]);
        v[i] = (struct shard_piece){.at = i};
        int64_t known_ns = time_of(h, &s->v[i]);
        v[i].cost_ns = (known_ns < 0 ? budget_guess_ns(s->v[i].scenario) : known_ns) *
                       (times < RUNS_MAX ? times : RUNS_MAX);
        if (known_ns < 0)
            texts_add(&guessed, "%s", s->v[i].scenario->name);
    }
    qsort(v, s->n, sizeof(*v), by_cost);
    deal(v, s->n, h->parts);
    for (size_t i = 0; i < s->n; i++) {
        all_ns += v[i].cost_ns;
        mine_ns += v[i].part == h->part ? v[i].cost_ns : 0;
    }
    h->all = s->n;
    name_split(h, s, v);
    keep(h, s, v);
    tell(h, &guessed, mine_ns, all_ns, out);
    free(v);
}
