#include "harness/preflight/preflight.h"

#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "harness/preflight/results.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

/* The way to a host, as ssh makes it, takes this host's processors as well: 0.1 s of them each. */
static const int64_t OPEN_NS = INT64_C(15) * 1000000000, OPEN_EACH_NS = INT64_C(750) * 1000000,
                     ANSWER_NS = INT64_C(15) * 1000000000;

int preflight_hosts(const char *text, struct arena *a, struct preflight_host **ret,
                    struct err *err) {
    size_t n = 0;
    char **words = str_split(a, text, ',', &n);
    struct preflight_host *v = arena_array(a, struct preflight_host, n);
    for (size_t i = 0; i < n; i++) {
        char *address = strchr(words[i], '=');
        if (address)
            *address++ = '\0';
        v[i] = (struct preflight_host){.name = words[i], .address = address ? address : words[i]};
        bool twice = false;
        for (size_t k = 0; k < i; k++)
            twice |= str_eq(v[k].name, v[i].name);
        if (!*v[i].name || !*v[i].address || v[i].name[0] == '-' || strpbrk(v[i].name, " \t/") ||
            twice)
            return err_say(err, -EINVAL,
                           "%s: write names, each once, with an address where others "
                           "reach it by another: n0,n1=10.0.0.2",
                           text);
    }
    *ret = v;
    return (int)n;
}

/* "ssh {host} rankquake" and what we say to it. NULL: our own program, here. */
static const char *const *words_of(const struct preflight *f, const char *host, struct arena *a) {
    size_t n = 0, k = 0;
    if (!f->via)
        return NULL;
    char **given = str_split(a, f->via, ' ', &n);
    const char **v = arena_array(a, const char *, n + 3);
    for (size_t i = 0; i < n; i++) {
        const char *at = strstr(given[i], "{host}");
        if (*given[i])
            v[k++] = at ? arena_printf(a, "%.*s%s%s", (int)(at - given[i]), given[i], host,
                                       at + strlen("{host}"))
                        : given[i];
    }
    v[k++] = "preflight";
    v[k++] = "--outpost";
    return v;
}

static bool is_asked(const struct preflight *f, const struct probe *p) {
    return (!*f->only || str_in(p->name, f->only)) && !str_in(p->name, f->without);
}

/* The hosts, from the first probe to the last. */
struct preflight_stations {
    struct arena arena;
    struct station *v;
    const char *const **words; /* of each */
    size_t n;
};

/* Whoever is there says something, within so long for all together; the others are silent from then on, and
 * hold up nobody. So no figure has the time in it in which the way to a host was made. */
static void call_roll(struct preflight_stations *s, int64_t within_ns) {
    ARENA_FINI struct arena a = {0};
    for (size_t i = 0; i < s->n; i++)
        station_ask(&s->v[i], "{\"do\":\"time\"}");
    int64_t until_ns = clock_monotonic_ns() + within_ns;
    for (size_t i = 0; i < s->n; i++)
        station_hear(&s->v[i], &a, until_ns);
}

static void open_all(const struct preflight *f, struct preflight_stations *s, struct utsname *own) {
    struct preflight_host here = {.name = own->nodename, .address = "127.0.0.1"};
    s->n = f->hosts_n ? f->hosts_n : 1;
    s->v = arena_array(&s->arena, struct station, s->n);
    s->words = arena_array(&s->arena, const char *const *, s->n);
    for (size_t i = 0; i < s->n; i++) {
        const struct preflight_host *h = f->hosts_n ? &f->hosts[i] : &here;
        s->words[i] = h->words ? h->words : words_of(f, h->name, &s->arena);
        station_open(&s->v[i], h->name, h->address, s->words[i]);
    }
    call_roll(s, OPEN_NS + (int64_t)s->n * OPEN_EACH_NS);
}

static void close_all(struct preflight_stations *s) {
    for (size_t i = 0; i < s->n; i++)
        station_end(&s->v[i]);
    for (size_t i = 0; i < s->n; i++)
        station_close(&s->v[i]);
    arena_fini(&s->arena);
}

/* Who was silent at the probe before is given another chance at this one. */
static void gather(struct preflight_stations *s) {
    int64_t again = 0;
    for (size_t i = 0; i < s->n; i++)
        again += station_open_again(&s->v[i], s->words[i]);
    call_roll(s, again ? OPEN_NS + again * OPEN_EACH_NS : ANSWER_NS);
}

static void ask(struct preflight_stations *s, struct probing *p) {
    if (p->of->for_many && s->n < 2) {
        probe_skip(p, "there is one host alone");
        return;
    }
    for (size_t i = 0; i < s->n; i++)
        if (*s->v[i].why)
            probe_fail(p, "%s: %s", s->v[i].host, s->v[i].why);
    p->of->ask(p);
}

static bool run_one(const struct preflight *f, struct preflight_stations *s, const struct probe *of,
                    const struct json *given, struct json_writer *w) {
    ARENA_FINI struct arena a = {0};
    struct probe_answer answer = {.status = PROBE_PASS};
    gather(s);
    int64_t began = clock_monotonic_ns();
    struct probing p = {.of = of,
                        .v = s->v,
                        .n = s->n,
                        .given = given,
                        .until_ns = began + of->within_ns,
                        .arena = &a,
                        .figures = w,
                        .ret = &answer};
    json_object(w, NULL);
    json_object(w, "figures");
    ask(s, &p);
    json_end_object(w);
    json_put_string(w, "name", of->name);
    json_put_string(w, "status", probe_status_names[answer.status]);
    json_put_string(w, "seen", answer.seen);
    answer.took_ns = clock_monotonic_ns() - began;
    json_put_i64(w, "took_us", answer.took_ns / 1000);
    json_end_object(w);
    if (f->told)
        f->told(f->arg, of->name, &answer);
    return answer.status != PROBE_FAIL;
}

/* ---- what others have measured ---- */

enum { RESULT_MAX = 64 << 20 };

static const char *read_result(const char *path, struct probe_answer *a, struct json_writer *w,
                               struct err *err) {
    BUF_FINI struct buf text = {0};
    if (file_read_plain(path, RESULT_MAX, &text, err) < 0)
        return NULL;
    const char *kind = results_read(buf_str(&text), text.len, a, w, err);
    if (!kind)
        err_wrap(err, "%s", path);
    return kind;
}

bool preflight_check_results(const char *const *files, struct err *err) {
    for (; files && *files; files++) {
        BUF_FINI struct buf out = {0};
        struct json_writer w = {.out = &out};
        struct probe_answer a;
        json_object(&w, NULL);
        if (!read_result(*files, &a, &w, err))
            return false;
    }
    return true;
}

/* One that has changed since it was checked, and is none any more, fails. */
static bool take_result(const struct preflight *f, const char *path, struct json_writer *w) {
    ARENA_FINI struct arena a = {0};
    struct probe_answer answer = {0};
    struct err err = {0};
    json_object(w, NULL);
    json_object(w, "figures");
    const char *kind = read_result(path, &answer, w, &err);
    json_end_object(w);
    if (!kind) {
        answer = (struct probe_answer){.status = PROBE_FAIL, .took_ns = -1};
        str_copy(answer.seen, sizeof(answer.seen), err.msg);
    }
    const char *name = arena_printf(&a, "%s %s", kind ? kind : "result", str_base(path));
    json_put_string(w, "name", name);
    json_put_string(w, "status", probe_status_names[answer.status]);
    json_put_string(w, "seen", answer.seen);
    json_end_object(w);
    if (f->told)
        f->told(f->arg, name, &answer);
    return answer.status != PROBE_FAIL;
}

bool preflight_run(const struct preflight *f, struct json_writer *w) {
    ARENA_FINI struct arena a = {0};
    const struct json *given = json_parse(&a, f->given, strlen(f->given), NULL);
    struct preflight_stations s = {0};
    struct utsname own;
    bool well = true;
    uname(&own);
    open_all(f, &s, &own);
    json_array(w, NULL);
    for (size_t i = 0; probes[i]; i++)
        if (is_asked(f, probes[i]))
            well &= run_one(f, &s, probes[i], given, w);
    for (const char *const *r = f->results; r && *r; r++)
        well &= take_result(f, *r, w);
    json_end_array(w);
    close_all(&s);
    return well;
}
