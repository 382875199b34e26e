#include "reports/certificate/certificate_page.h"

#include "base/str.h"
#include "reports/certificate/alike.h"
#include "reports/certificate/victim_line.h"
#include "reports/escape.h"
#include "reports/plain_page.h"

#include <stdint.h>
#include <string.h>

static const char style[] =
    "h1{margin-bottom:.2rem}h2{margin-top:2rem}.verdict{font-size:1.6rem;font-weight:600}\n"
    "table{font-size:.92rem}th+th,td+td{padding-left:1rem}td.n,th.n{text-align:right;white-space:"
    "nowrap}\n"
    "code{overflow-wrap:anywhere;font-size:.85em}dl{display:grid;grid-template-columns:12rem "
    "1fr;gap:.2rem 1rem;margin:1rem 0}dt{opacity:.7}dd{margin:0}\n"
    ".alike td{overflow-wrap:anywhere}.alike td:first-child{width:34%}.alike "
    "td:last-child{width:24%}\n"
    "@page{size:A4;margin:16mm}\n"
    "@media print{:root{color-scheme:light}body{font-size:10pt;margin:0;max-width:none;padding:0}"
    "h2{break-after:avoid}tr,dl{break-inside:avoid}thead{display:table-header-group}"
    "table{font-size:9pt}a{color:inherit;text-decoration:none}}\n"
    "</style>\n";

static const char *text(const struct json *j, const char *key) {
    return json_get_string(j, key, "");
}

static const char *tone(int64_t code) {
    return code == 0 ? "good" : code == 1 || code == 5 ? "bad" : "doubt";
}

static const char *tone_of(const char *status) {
    return str_eq(status, "pass") ? "good" : str_eq(status, "fail") ? "bad" : "doubt";
}

static void put_term(struct buf *out, const char *term, const char *what) {
    if (*what)
        escape_printf(out, "<dt>%s</dt><dd>%s</dd>\n", term, what);
}

/* ---- head ---- */

static void put_list(struct buf *out, const struct json *list) {
    bool any = false;
    json_each(m, list) {
        buf_puts(out, any ? " " : "");
        escape_put(out, json_string(m, ""));
        any = true;
    }
    if (!any)
        buf_puts(out, "none");
}

/* Whoever reads no further knows why it is not passed. */
static void put_why(const struct json *c, struct buf *out) {
    const char *comma = "";
    size_t runs = 0, passed = 0;
    json_each(s, json_get(c, "scenarios")) {
        runs++;
        passed += json_get_i64(s, "exit_code", 3) == 0;
    }
    escape_printf(out, "<p>%zu of %zu runs passed", passed, runs);
    json_each(p, json_get(c, "preflight")) if (str_eq(text(p, "status"), "fail")) {
        escape_printf(out, "%s%s", *comma ? comma : "; preflight failed: ", text(p, "name"));
        comma = ", ";
    }
    buf_puts(out, ".</p>\n");
}

static void put_head(const struct json *c, struct buf *out) {
    const struct json *suite = json_get(c, "suite");
    int64_t code = json_get_i64(c, "exit_code", 3);
    escape_printf(out, "<title>Certificate: %s, %s</title>\n", text(suite, "name"),
                  text(c, "result"));
    buf_puts(out, plain_page_style);
    buf_puts(out, style);
    escape_printf(out,
                  "</head>\n<body>\n<h1>Do jobs survive here?</h1>\n<p class=\"verdict %s\">%s: "
                  "%s</p>\n",
                  tone(code), text(suite, "name"), text(c, "result"));
    put_why(c, out);
    buf_puts(out, "<dl>\n");
    put_term(out, "operator", text(c, "operator"));
    put_term(out, "issued", text(c, "issued"));
    put_term(out, "expires", text(c, "expires"));
    put_term(out, "rankquake", text(c, "version"));
    if (json_get(suite, "command") && json_first(json_get(suite, "command"))) {
        buf_puts(out, "<dt>job</dt><dd><code>");
        put_list(out, json_get(suite, "command"));
        buf_puts(out, "</code></dd>\n");
    }
    int64_t times = json_get_i64(suite, "repeat", 1);
    escape_printf(out, "<dt>each scenario</dt><dd>%lld time%s%s</dd>\n", (long long)times,
                  times == 1 ? "" : "s",
                  json_get_bool(suite, "every_node", false) ? ", with each node as the victim"
                                                            : "");
    buf_puts(out, "</dl>\n");
}

static void put_number(struct buf *out, const char *term, const struct json *v, const char *unit) {
    if (v && v->type == JSON_INT)
        escape_printf(out, "<dt>%s</dt><dd>%lld%s</dd>\n", term, (long long)v->integer, unit);
}

static void put_permitted(const struct json *p, struct buf *out) {
    buf_puts(out, "<h2>Permitted</h2>\n<dl>\n");
    put_term(out, "faults up to class", text(p, "most"));
    put_number(out, "in force at once", json_get(p, "max_concurrent_faults"), "");
    put_number(out, "longest fault", json_get(p, "max_fault_ms"), " ms");
    put_number(out, "time in all", json_get(p, "max_time_ms"), " ms");
    buf_puts(out, "<dt>denied</dt><dd>");
    put_list(out, json_get(p, "deny"));
    buf_puts(out, "</dd>\n<dt>windows</dt><dd>");
    put_list(out, json_get(p, "windows"));
    buf_puts(out, "</dd>\n</dl>\n");
}

/* ---- hosts and preflight ---- */

static void name_hosts(struct alike *a, const struct json *hosts) {
    json_each(h, hosts) alike_add_host(a, text(h, "name"));
}

/* Who each is; what they are made of stands below, once for all that are the same. */
static void put_host(const struct json *h, struct buf *out) {
    const struct json *i = json_get(h, "inventory");
    escape_printf(out, "<tr><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>",
                  text(h, "name"), text(h, "provider"), text(h, "address"), text(h, "node"),
                  text(h, "rack"));
    json_each(n, json_get(i, "nics"))
        escape_printf(out, "%s <code>%s</code> ", text(n, "name"), text(n, "address"));
    json_each(g, json_get(i, "gpus")) escape_printf(out, "<code>%s</code> ", text(g, "name"));
    buf_puts(out, "</td></tr>\n");
}

static void put_inventories(const struct json *hosts, struct buf *out) {
    static const char *const own[] = {"host", "address", "name", NULL};
    struct alike a = {0};
    name_hosts(&a, hosts);
    size_t n = 0;
    json_each(h, hosts) alike_add(&a, n++, "", json_get(h, "inventory"), own);
    buf_puts(
        out,
        "<h3>Inventory</h3>\n<table "
        "class=\"alike\">\n<thead><tr><th>inventory</th><th>is</th><th>on</th></tr></thead>\n");
    alike_put(&a, out);
    buf_puts(out, "</table>\n");
    alike_fini(&a);
}

static void put_all_hosts(const struct json *hosts, struct buf *out) {
    buf_puts(out, "<h2>Hosts</h2>\n<table>\n<thead><tr><th>host</th><th>reached by</th><th>address"
                  "</th><th>node</th><th>rack</th><th>cards and GPUs</th></tr></thead>\n");
    json_each(h, hosts) put_host(h, out);
    buf_puts(out, "</table>\n");
    put_inventories(hosts, out);
}

/* What probes have measured is by host, or of all together. */
static void put_figures(const struct json *list, const struct json *hosts, struct buf *out) {
    static const char *const elsewhere[] = {"inventory", "name", "path", "host", NULL};
    buf_puts(out, "<h3>Figures</h3>\n<table "
                  "class=\"alike\">\n<thead><tr><th>figure</th><th>is</th><th>on</th></tr>"
                  "</thead>\n");
    json_each(p, list) {
        struct alike a = {0};
        name_hosts(&a, hosts);
        json_each(f, json_get(p, "figures")) {
            if (f->type == JSON_ARRAY && !json_first(f))
                continue; /* nothing was found, as the result says */
            size_t host = alike_find_host(&a, f->key);
            const char *key = host == SIZE_MAX ? f->key : "";
            alike_add(&a, host,
                      arena_printf(&a.arena, "%s%s%s", text(p, "name"), *key ? " " : "", key), f,
                      elsewhere);
        }
        alike_put(&a, out);
        alike_fini(&a);
    }
    buf_puts(out, "</table>\n");
}

static void put_preflight(const struct json *list, const struct json *hosts, struct buf *out) {
    if (!list)
        return;
    buf_puts(out, "<h2>Preflight</h2>\n<table>\n<thead><tr><th>probe</th><th>result</th><th>seen"
                  "</th></tr></thead>\n");
    json_each(p, list) escape_printf(
        out, "<tr><td>%s</td><td class=\"%s\">%s</td><td>%s</td></tr>\n", text(p, "name"),
        tone_of(text(p, "status")), text(p, "status"), text(p, "seen"));
    buf_puts(out, "</table>\n");
    put_figures(list, hosts, out);
}

/* ---- runs ---- */

static void put_time(struct buf *out, int64_t us, int64_t bound_us) {
    if (us < 0)
        buf_puts(out, "<td class=\"n\">\xe2\x80\x93");
    else
        escape_printf(out, "<td class=\"n%s\">%.2f s", bound_us >= 0 && us > bound_us ? " bad" : "",
                      (double)us / 1e6);
    if (bound_us >= 0)
        escape_printf(out, " of %.3g s", (double)bound_us / 1e6);
    buf_puts(out, "</td>");
}

static void put_fault(const struct json *f, struct buf *out) {
    escape_printf(out, "<td>%s on %s%s</td>", text(f, "fault"), text(f, "on"),
                  json_get_bool(f, "felt", false) ? "" : ", not felt");
    put_time(out, json_get_i64(f, "detect_us", -1), json_get_i64(f, "detect_bound_us", -1));
    put_time(out, json_get_i64(f, "recover_us", -1), json_get_i64(f, "recover_bound_us", -1));
    buf_puts(out, "</tr>\n");
}

/* The first fault stands beside the run, the others below it. */
static void put_run(const struct json *s, struct buf *out) {
    escape_printf(out, "<tr><td>%s</td><td class=\"%s\">%s</td>", text(s, "name"),
                  tone(json_get_i64(s, "exit_code", 3)), text(s, "result"));
    const struct json *first = json_first(json_get(s, "faults"));
    if (!first)
        escape_printf(out, "<td>%s</td><td></td><td></td></tr>\n", text(s, "why"));
    json_each(f, json_get(s, "faults")) {
        if (f != first)
            buf_puts(out, "<tr><td></td><td></td>");
        put_fault(f, out);
    }
}

static void put_runs(const struct json *scenarios, struct buf *out) {
    buf_puts(out,
             "<h2>Scenarios</h2>\n<table>\n<thead><tr><th>scenario</th><th>result</th><th>fault"
             "</th><th class=\"n\">detected</th><th class=\"n\">recovered</th></tr></thead>\n");
    json_each(s, scenarios) put_run(s, out);
    buf_puts(out, "</table>\n");
}

/* What passed is counted; the rest is named. */
static void put_checks(const struct json *scenarios, struct buf *out) {
    size_t passed = 0, others = 0;
    json_each(s, scenarios) json_each(k, json_get(s, "checks")) {
        bool skip = str_eq(text(k, "status"), "skip");
        passed += str_eq(text(k, "status"), "pass");
        others += !skip && !str_eq(text(k, "status"), "pass");
    }
    escape_printf(out, "<h2>Checks</h2>\n<p>%zu passed, %zu did not.</p>\n", passed, others);
    if (!others)
        return;
    buf_puts(out, "<table>\n<thead><tr><th>scenario</th><th>check</th><th>result</th><th>seen</th>"
                  "</tr></thead>\n");
    json_each(s, scenarios)
        json_each(k, json_get(s, "checks")) if (!str_eq(text(k, "status"), "pass") &&
                                                !str_eq(text(k, "status"), "skip"))
            escape_printf(
                out, "<tr><td>%s</td><td>%s</td><td class=\"%s\">%s</td><td>%s%s%s</td></tr>\n",
                text(s, "name"), k->key, tone_of(text(k, "status")), text(k, "status"),
                text(k, "seen"), *text(k, "expected") ? "; expected: " : "", text(k, "expected"));
    buf_puts(out, "</table>\n");
}

static void put_victim(const struct json *v, struct buf *out) {
    BUF_FINI struct buf times = {0};
    int64_t runs = json_get_i64(v, "runs", 0), passed = json_get_i64(v, "passed", 0);
    victim_put_times(v, &times);
    escape_printf(out,
                  "<tr><td>%s</td><td class=\"n\">%lld</td><td class=\"n %s\">%lld</td><td "
                  "class=\"n\">%s</td><td class=\"doubt\">",
                  text(v, "name"), (long long)runs, passed == runs ? "good" : "bad",
                  (long long)passed, times.len ? buf_str(&times) : "\xe2\x80\x93");
    json_each(x, json_get(v, "slower"))
        escape_printf(out, "%s: %.2f s, its peers %.2f s<br>", text(x, "name"),
                      (double)json_get_i64(x, "recover_us", 0) / 1e6,
                      (double)json_get_i64(x, "peers_us", 0) / 1e6);
    buf_puts(out, "</td></tr>\n");
}

static void put_victims(const struct json *list, const char *heading, const char *one,
                        struct buf *out) {
    if (!json_first(list))
        return;
    escape_printf(out,
                  "<h2>%s as victims</h2>\n<table>\n<thead><tr><th>%s</th><th class=\"n\">runs"
                  "</th><th class=\"n\">passed</th><th class=\"n\">recovered (median, least to "
                  "most)</th><th>slower than its peers</th></tr></thead>\n",
                  heading, one);
    json_each(v, list) put_victim(v, out);
    buf_puts(out, "</table>\n");
}

static void put_left_out(const struct json *left, struct buf *out) {
    buf_puts(out, "<h2>Left out</h2>\n");
    if (!json_first(left)) {
        buf_puts(out, "<p>Nothing.</p>\n");
        return;
    }
    buf_puts(out, "<table>\n");
    json_each(l, left)
        escape_printf(out, "<tr><td>%s</td><td>%s</td></tr>\n", text(l, "name"), text(l, "why"));
    buf_puts(out, "</table>\n");
}

static void put_hashes(const struct json *c, struct buf *out) {
    buf_puts(out, "<h2>SHA-256</h2>\n<table>\n");
    json_each(f, json_get(json_get(c, "suite"), "files"))
        escape_printf(out, "<tr><td>%s</td><td><code>%s</code></td></tr>\n",
                      str_base(text(f, "name")), text(f, "sha256"));
    json_each(s, json_get(c, "scenarios")) if (*text(s, "history_sha256"))
        escape_printf(out, "<tr><td>history of %s</td><td><code>%s</code></td></tr>\n",
                      text(s, "dir"), text(s, "history_sha256"));
    buf_puts(out, "</table>\n");
}

void certificate_page(const struct json *c, struct buf *out) {
    buf_puts(out, plain_page_head);
    put_head(c, out);
    put_runs(json_get(c, "scenarios"), out);
    put_checks(json_get(c, "scenarios"), out);
    put_victims(json_get(c, "nodes"), "Nodes", "node", out);
    put_victims(json_get(c, "racks"), "Racks", "rack", out);
    put_left_out(json_get(c, "left_out"), out);
    put_permitted(json_get(c, "permitted"), out);
    put_preflight(json_get(c, "preflight"), json_get(c, "hosts"), out);
    put_all_hosts(json_get(c, "hosts"), out);
    put_hashes(c, out);
    buf_puts(out, "</body>\n</html>\n");
}
