/* Composes a certificate of what was run, writes it with its page, and has it signed. */
#include "harness/verbs/certify/certifying.h"

#include "base/canonical.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/certify/signature.h"
#include "harness/certify/victims.h"
#include "reports/certificate/certificate_page.h"
#include "reports/certificate/victim_line.h"
#include "reports/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY_VICTIMS = 16 };

/* ---- its parts ---- */

static void put_file(struct json_writer *w, const char *path) {
    BUF_FINI struct buf text = {0};
    struct folder f = FOLDER_NONE;
    char hex[65];
    const char *base = str_base(path);
    ARENA_FINI struct arena a = {0};
    const char *in = base == path ? "." : arena_strndup(&a, path, (size_t)(base - path));
    bool there = folder_open(&f, in, NULL) == 0 && certificate_hash(&f, base, hex, NULL) == 0;
    json_object(w, NULL);
    json_put_string(w, "name", path);
    json_put_string(w, "sha256", there ? hex : NULL);
    json_end_object(w);
    folder_close(&f);
}

static void put_suite(const struct certification *c, struct json_writer *w) {
    json_object(w, "suite");
    json_put_string(w, "name", c->suite);
    json_put_i64(w, "repeat", c->repeat);
    json_put_bool(w, "every_node", c->every_node);
    json_put_strings(w, "sets", c->selection.sets);
    json_put_strings(w, "command", (const char *const *)c->arguments->rest);
    json_array(w, "files");
    if (str_ends(c->path, ".yaml"))
        put_file(w, c->path);
    for (size_t i = 0; i < c->selection.n; i++)
        if (i == 0 || !str_eq(c->selection.v[i].file, c->selection.v[i - 1].file))
            put_file(w, c->selection.v[i].file);
    json_end_array(w);
    json_end_object(w);
}

static void put_left_out(const struct certification *c, struct json_writer *w) {
    json_array(w, "left_out");
    for (size_t i = 0; i < c->left_n; i++) {
        json_object(w, NULL);
        json_put_string(w, "name", c->left[i].what);
        json_put_string(w, "why", c->left[i].why);
        json_end_object(w);
    }
    json_end_array(w);
}

static void put_head(const struct certification *c, int code, struct json_writer *w) {
    char issued[24], expires[24];
    acts_time(c->issued_ns, issued);
    acts_time(c->issued_ns + c->days * 86400 * 1000000000, expires);
    json_put_string(w, "format", CERTIFICATE_FORMAT);
    json_put_string(w, "issued", issued);
    json_put_string(w, "expires", expires);
    json_put_string(w, "operator", c->operator_);
    json_put_string(w, "version", RANKQUAKE_VERSION);
    json_put_i64(w, "exit_code", code);
    json_put_string(w, "result", report_outcome(code));
}

/* page: NULL while it is not there yet. */
static int put_files(const struct certification *c, const struct buf *page, struct json_writer *w,
                     struct err *err) {
    char hex[65];
    int r = certificate_hash(&c->dir, "acts.jsonl", hex, err);
    json_object(w, "files");
    if (r == 0)
        json_put_string(w, "acts.jsonl", hex);
    sha256_of(page->data, page->len, hex);
    json_put_string(w, CERTIFICATE_PAGE, hex);
    json_end_object(w);
    return r;
}

struct parts {
    struct arena arena;
    const struct json *scenarios, *preflight, *whole;
    int code;
};

static void compose(struct certification *c, const struct parts *p, const struct buf *page,
                    struct buf *out, struct err *err, int *r) {
    struct json_writer w = {.out = out};
    json_object(&w, NULL);
    put_head(c, p->code, &w);
    put_suite(c, &w);
    permit_put(&c->permit, &w, "permitted");
    certify_hosts_put(c, &w, "hosts");
    if (p->preflight)
        json_put_tree(&w, "preflight", p->preflight);
    json_put_tree(&w, "scenarios", p->scenarios);
    victims_put(p->scenarios, &w, VICTIMS_NODES);
    victims_put(p->scenarios, &w, VICTIMS_RACKS);
    put_left_out(c, &w);
    if (page)
        *r = put_files(c, page, &w, err);
    json_end_object(&w);
}

/* ---- the whole ---- */

static int make(struct certification *c, struct parts *p, struct buf *page, struct buf *ret,
                struct err *err) {
    BUF_FINI struct buf text = {0};
    int r = 0;
    compose(c, p, NULL, &text, err, &r);
    const struct json *j = json_parse(&p->arena, text.data, text.len, err);
    if (!j)
        return -EBADMSG;
    certificate_page(j, page);
    buf_clear(&text);
    compose(c, p, page, &text, err, &r);
    j = r < 0 ? NULL : json_parse(&p->arena, text.data, text.len, err);
    if (!j)
        return r < 0 ? r : -EBADMSG;
    p->whole = j;
    return canonical_put(j, ret, err);
}

static int keep(const struct certification *c, const char *name, const struct buf *text,
                struct err *err) {
    return folder_write_synced(&c->dir, name, text->data, text->len, err);
}

static int sign(const struct certification *c, const struct buf *text, struct err *err) {
    BUF_FINI struct buf signature = {0};
    int r = c->key ? signature_make(c->key, text, &signature, err) : 0;
    return r == 0 && c->key ? keep(c, CERTIFICATE_SIG, &signature, err) : r;
}

/* Each of a few; of many those alone that are not as they should be. */
static void tell_victims(const struct json *certificate, const char *key) {
    const struct json *list = json_get(certificate, key);
    size_t n = list ? list->length : 0, told = 0;
    json_each(v, list) {
        BUF_FINI struct buf line = {0};
        if (n > MANY_VICTIMS && victim_is_well(v))
            continue;
        victim_line(v, &line);
        printf("  %-12s %s\n", json_get_string(v, "name", "?"), buf_str(&line));
        told++;
    }
    if (told < n)
        printf("  %-12s the other %zu passed all of their runs, none slower than its peers\n", key,
               n - told);
}

static void tell(const struct certification *c, const struct json *certificate, int code) {
    printf("\n%s: %s\n", c->suite, report_outcome(code));
    tell_victims(certificate, VICTIMS_NODES);
    tell_victims(certificate, VICTIMS_RACKS);
    for (size_t i = 0; i < c->left_n; i++)
        printf("  left out: %s: %s\n", c->left[i].what, c->left[i].why);
    printf("  certificate  %s/" CERTIFICATE_FILE "\n", c->dir.path);
    printf("  page         %s/" CERTIFICATE_PAGE "\n", c->dir.path);
    if (c->key)
        printf("  signature    %s/" CERTIFICATE_SIG "\n", c->dir.path);
    else
        printf("  it is not signed; sign it by: ssh-keygen -Y sign -f KEY -n " SIGNATURE_NAMESPACE
               " %s/" CERTIFICATE_FILE "\n",
               c->dir.path);
}

int certify_issue(struct certification *c) {
    struct parts p = {.code = EXIT_BROKEN};
    BUF_FINI struct buf page = {0}, text = {0};
    struct err err = {0};
    int r = 0;
    c->issued_ns = clock_realtime_ns();
    acts_say(&c->acts, "certificate", "file", CERTIFICATE_FILE);
    p.scenarios = json_parse(&p.arena, c->scenarios.data, c->scenarios.len, &err);
    if (c->preflight.len)
        p.preflight = json_parse(&p.arena, c->preflight.data, c->preflight.len, &err);
    p.code = certificate_result(p.scenarios, p.preflight);
    if (c->acts.failed.code) {
        err = c->acts.failed;
        r = err.code;
    }
    r = r ? r : make(c, &p, &page, &text, &err);
    r = r ? r : keep(c, CERTIFICATE_PAGE, &page, &err);
    r = r ? r : keep(c, CERTIFICATE_FILE, &text, &err);
    r = r ? r : sign(c, &text, &err);
    if (r == 0)
        tell(c, p.whole, p.code);
    arena_fini(&p.arena);
    return r < 0 ? verb_broken(c->arguments->verb, &err) : p.code;
}
