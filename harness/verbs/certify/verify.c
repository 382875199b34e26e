/* certify verify: whether a certificate is whole, signed by who may, of this time, and whether its
 * histories say what it says of them. */
#include "harness/verbs/certify/certifying.h"

#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/certify/certified_run.h"
#include "harness/certify/difference.h"
#include "harness/certify/signature.h"
#include "harness/certify/victims.h"
#include "harness/judge/recording.h"
#include "harness/preflight/inventory.h"
#include "reports/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct verification {
    const struct arguments *arguments;
    struct arena arena;
    struct folder dir;
    struct buf text;
    const struct json *certificate;
    bool programs;
    size_t judged, unasked; /* runs judged again; checks that were not asked again */
    size_t told;
    int code; /* the first thing that is wrong; 0: nothing yet */
};

static int wrong(struct verification *v, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int wrong(struct verification *v, int code, const char *fmt, ...) {
    va_list ap;
    BUF_FINI struct buf text = {0};
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    if (v->told++ < 20)
        fprintf(stderr, "rankquake certify: %s\n", buf_str(&text));
    if (!v->code)
        v->code = code;
    return code;
}

/* ---- the signature ---- */

/* "2026-11-29T11:45:00Z" as ssh-keygen takes times: 20261129114500Z. */
static void compact(const char *time, char ret[24]) {
    size_t n = 0;
    for (; *time && n < 22; time++)
        if (!strchr("-:T", *time))
            ret[n++] = *time;
    ret[n] = '\0';
}

static int check_signature(struct verification *v) {
    const char *signers = arguments_value(v->arguments, "--signers");
    BUF_FINI struct buf signature = {0};
    struct signature_judged by;
    struct err err = {0};
    char at[24];
    if (folder_read(&v->dir, CERTIFICATE_SIG, 1 << 20, &signature, &err) < 0)
        return wrong(v, CERTIFICATE_ALTERED, "there is no signature: %s", err.msg);
    compact(json_get_string(v->certificate, "issued", ""), at);
    int r = signature_check(signers, at, &v->text, &signature, &by, &err);
    if (r < 0)
        return wrong(v, EXIT_USAGE_ERROR, "%s", err.msg);
    if (r == SIGNATURE_BAD)
        return wrong(v, CERTIFICATE_ALTERED,
                     CERTIFICATE_FILE " and " CERTIFICATE_SIG
                                      " do not belong together, one of them was changed: %s",
                     err.msg);
    if (r == SIGNATURE_STRANGER)
        return wrong(v, CERTIFICATE_STRANGER, "%s", err.msg);
    printf("signed      by %s (%s)\n", by.principal, by.key);
    return 0;
}

/* ---- time and place ---- */

static bool read_time(const char *text, int64_t *ret) {
    struct tm tm = {0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    if (!end || *end) {
        tm = (struct tm){0};
        end = strptime(text, "%Y-%m-%d", &tm);
    }
    if (!end || *end)
        return false;
    *ret = timegm(&tm);
    return true;
}

static void check_time(struct verification *v) {
    const char *at = arguments_value(v->arguments, "--at");
    const char *issued = json_get_string(v->certificate, "issued", "");
    const char *expires = json_get_string(v->certificate, "expires", "");
    int64_t now = clock_realtime_ns() / 1000000000, from, to;
    if (at)
        read_time(at, &now); /* checked when it was taken */
    if (!read_time(issued, &from) || !read_time(expires, &to))
        wrong(v, CERTIFICATE_CUT, "it does not say from when and until when it holds");
    else if (now > to)
        wrong(v, CERTIFICATE_EXPIRED, "it has expired: it held until %s", expires);
    else if (now < from - 300)
        wrong(v, CERTIFICATE_EXPIRED, "it was issued at %s, which is yet to come by this clock",
              issued);
    else
        printf("holds       from %s to %s\n", issued, expires);
}

static void tell_inventory(void *arg, const struct difference *d) {
    struct verification *v = arg;
    BUF_FINI struct buf was = {0}, is = {0};
    difference_put_value(d->was, &was);
    difference_put_value(d->is, &is);
    wrong(v, CERTIFICATE_ELSEWHERE, "another inventory: %s was %s, and is %s here", d->path,
          buf_str(&was), buf_str(&is));
}

static void check_inventory(struct verification *v) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    inventory_put(&w, NULL);
    const struct json *here = json_parse(&v->arena, text.data, text.len, NULL);
    const char *host = json_get_string(here, "host", "?");
    json_each(h,
              json_get(v->certificate,
                       "hosts")) if (str_eq(json_get_string(json_get(h, "inventory"), "host", NULL),
                                            host)) {
        if (!difference_each(json_get(h, "inventory"), here, NULL, tell_inventory, v))
            printf("inventory   that of this host, %s\n", host);
        return;
    }
    wrong(v, CERTIFICATE_ELSEWHERE, "another inventory: host %s is not in it", host);
}

/* ---- hashes ---- */

static bool check_hash(struct verification *v, const char *name, const char *expected) {
    struct err err = {0};
    char hex[65];
    if (certificate_hash(&v->dir, name, hex, &err) < 0)
        wrong(v, CERTIFICATE_ALTERED, "%s cannot be hashed: %s", name, err.msg);
    else if (!str_eq(hex, expected))
        wrong(v, CERTIFICATE_ALTERED, "%s was changed: its SHA-256 is %s, and %s was certified",
              name, hex, expected ? expected : "none");
    else
        return true;
    return false;
}

static void check_files(struct verification *v) {
    json_each(f, json_get(v->certificate, "files")) check_hash(v, f->key, json_string(f, NULL));
}

/* ---- judging again ---- */

struct comparing {
    struct verification *v;
    const char *name;
};

static void tell_verdict(void *arg, const struct difference *d) {
    struct comparing *c = arg;
    BUF_FINI struct buf was = {0}, is = {0};
    difference_put_value(d->was, &was);
    difference_put_value(d->is, &is);
    wrong(c->v, CERTIFICATE_REJUDGED, "%s, judged again: %s is %s, and %s was certified", c->name,
          d->path, buf_str(&is), buf_str(&was));
}

/* Programs of the operator's own answer only where they may be started. */
static const char *const *left_out_of(struct verification *v, const struct json *run) {
    /* How a finding is worded may change from version to version. */
    static const char *const always[] = {"name", "file",           "dir",
                                         "sets", "history_sha256", "why",
                                         "seen", "expected",       "scenario_sha256",
                                         NULL};
    size_t n = sizeof(always) / sizeof(*always) - 1;
    const struct json *checks = json_get(run, "checks");
    const char **list = arena_array(&v->arena, const char *, n + (checks ? checks->length : 0) + 3);
    memcpy(list, always, n * sizeof(*list));
    size_t own = 0;
    json_each(k, checks) if (!v->programs && certified_is_own(k->key)) {
        list[n++] = k->key;
        own++;
    }
    if (own) { /* they decide these, too */
        list[n++] = "exit_code";
        list[n++] = "result";
    }
    v->unasked += own;
    return list;
}

static void compare_run(struct verification *v, const struct json *run,
                        const struct recorded_run *again) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    struct comparing c = {.v = v, .name = json_get_string(run, "dir", "?")};
    json_object(&w, NULL);
    certified_run_put(again, &w);
    json_end_object(&w);
    const struct json *is = json_parse(&v->arena, text.data, text.len, NULL);
    difference_each(run, is, left_out_of(v, run), tell_verdict, &c);
    v->judged++;
}

static void judge_again(struct verification *v, const struct json *run, const char *dir) {
    struct recording *r = mem_new(struct recording);
    BUF_FINI struct buf complaint = {0};
    const char *path = arena_printf(&v->arena, "%s/%s", v->dir.path, dir);
    struct recording_source from = {.dir = path, .programs = v->programs};
    if (recording_read(r, &from, &complaint) == 0) {
        compare_run(v, run, &r->run);
        recording_fini(r);
    } else {
        size_t n = strcspn(buf_str(&complaint), "\n");
        wrong(v, CERTIFICATE_ALTERED, "%s cannot be judged again: %.*s", dir, (int)n,
              buf_str(&complaint));
    }
    free(r);
}

static void check_run(struct verification *v, const struct json *run) {
    const char *dir = json_get_string(run, "dir", NULL);
    if (!dir)
        return; /* it broke before there was anything to judge, and is told as broken */
    bool history = check_hash(v, arena_printf(&v->arena, "%s/history.jsonl", dir),
                              json_get_string(run, "history_sha256", NULL));
    bool scenario = check_hash(v, arena_printf(&v->arena, "%s/scenario.yaml", dir),
                               json_get_string(run, "scenario_sha256", NULL));
    if (history && scenario)
        judge_again(v, run, dir);
}

static void check_victims(struct verification *v, const char *key) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    struct comparing told = {.v = v, .name = key};
    json_object(&w, NULL);
    victims_put(json_get(v->certificate, "scenarios"), &w, key);
    json_end_object(&w);
    const struct json *is = json_parse(&v->arena, text.data, text.len, NULL);
    difference_each(json_get(v->certificate, key), json_get(is, key), NULL, tell_verdict, &told);
}

/* What is said of all follows from what is said of each. */
static void check_sums(struct verification *v) {
    const struct json *c = v->certificate, *scenarios = json_get(c, "scenarios");
    check_victims(v, VICTIMS_NODES);
    check_victims(v, VICTIMS_RACKS);
    int code = certificate_result(scenarios, json_get(c, "preflight"));
    if (json_get_i64(c, "exit_code", -1) != code ||
        !str_eq(json_get_string(c, "result", NULL), report_outcome(code)))
        wrong(v, CERTIFICATE_REJUDGED,
              "its runs and probes together come to \"%s\", and \"%s\" was certified",
              report_outcome(code), json_get_string(c, "result", "nothing"));
}

/* ---- the whole ---- */

static int conclude(const struct verification *v) {
    const struct json *c = v->certificate;
    if (v->code)
        return v->code;
    printf("judged      %zu run%s again, with the same verdicts", v->judged,
           v->judged == 1 ? "" : "s");
    if (v->unasked)
        printf("; %zu check%s of programs not asked again (--programs)", v->unasked,
               v->unasked == 1 ? "" : "s");
    printf("\ncertified   %s: %s\n", json_get_string(json_get(c, "suite"), "name", "?"),
           json_get_string(c, "result", "?"));
    return (int)json_get_i64(c, "exit_code", EXIT_BROKEN);
}

static int verify(struct verification *v) {
    struct err err = {0};
    v->certificate = certificate_read(&v->arena, &v->dir, &v->text, &err);
    if (!v->certificate)
        return wrong(v, CERTIFICATE_CUT, "%s", err.msg);
    if (check_signature(v))
        return v->code; /* nothing that it says is anybody's word */
    check_time(v);
    if (arguments_value(v->arguments, "--here"))
        check_inventory(v);
    check_files(v);
    json_each(run, json_get(v->certificate, "scenarios")) check_run(v, run);
    check_sums(v);
    return conclude(v);
}

int certify_verify(const struct arguments *a) {
    struct verification v = {.arguments = a, .dir = FOLDER_NONE};
    const char *at = arguments_value(a, "--at");
    int64_t ignored;
    v.programs = arguments_value(a, "--programs");
    if (a->files_n != 2)
        return verb_usage_error(a->verb, "verify which certificate? Name its directory");
    if (!arguments_value(a, "--signers"))
        return verb_usage_error(a->verb,
                                "who may sign? Name a file by --signers, with a line for each: "
                                "NAME ssh-ed25519 KEY (ALLOWED SIGNERS in ssh-keygen(1))");
    if (at && !read_time(at, &ignored))
        return verb_usage_error(a->verb, "--at %s: write a date, as in 2027-01-31", at);
    int code = certify_open(a, a->files[1], &v.dir);
    code = code ? code : verify(&v);
    folder_close(&v.dir);
    buf_fini(&v.text);
    arena_fini(&v.arena);
    return code;
}
