#include "reports/html.h"
#include "reports/story.h"

#include "base/base64.h"
#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>

/* The one script that may run, by its hash: none that comes with a text does. */
static void put_script_hash(struct html *h) {
    struct sha256 s;
    char hex[65], digits[3] = "";
    unsigned char hash[32];
    sha256_init(&s);
    sha256_update(&s, html_script, strlen(html_script));
    sha256_hex(&s, hex);
    for (size_t i = 0; i < sizeof(hash); i++) {
        memcpy(digits, hex + 2 * i, 2);
        hash[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    base64_put(h->out, hash, sizeof(hash));
}

/* Nothing but what stands on the page may be used by it, whatever is on it. */
static void put_begin(struct html *h) {
    html_put(h, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                "base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; img-src data:; "
                "script-src 'sha256-");
    put_script_hash(h);
    html_put(h,
             "'\">\n<meta name=\"viewport\" content=\"width=device-width, "
             "initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n<title>"
             "%s %s</title>\n<style>\n",
             h->run->scenario->name, report_outcome(h->run->verdict->exit_code));
    buf_puts(h->out, html_style);
    html_put(h, "</style>\n</head>\n<body>\n");
}

static void put_link(struct html *h, const char *where, const char *part, const char *name) {
    html_put(h, " <a href=\"%s%s\">%s</a>", where, part, name);
}

/* Links lead to the files beside the page. */
static void put_end(struct html *h) {
    html_put(h, "<footer>\n<p>In this directory:");
    put_link(h, "", "history.jsonl", "every record");
    html_put(h, " \u00b7");
    put_link(h, "", "scenario.yaml", "the scenario");
    html_put(h, " \u00b7");
    put_link(h, "", "verdict.json", "the verdict");
    html_put(h, " \u00b7 logs of");
    for (size_t i = 0; i < h->nodes_n; i++)
        put_link(h, "logs/", h->nodes[i], h->nodes[i]);
    html_put(h,
             "</p>\n<p>RankQuake %s, launcher %s%s, seed %lld. %zu records%s"
             "</p>\n</footer>\n<script>",
             story_run_text(h->run, "version"), story_run_text(h->run, "launcher"),
             story_of_processes(h->run) ? ", nodes were processes of the host" : "",
             (long long)story_seed(h->run), h->run->history->n, ".");
    buf_puts(h->out, html_script);
    html_put(h, "</script>\n</body>\n</html>\n");
}

static int render(const struct recorded_run *run, const struct report_style *style, struct buf *out,
                  struct err *err) {
    struct html h = {.out = out, .run = run};
    incidents_load(&h.incidents, run->history, run->rounds);
    html_bars(&h);
    put_begin(&h);
    html_put(&h, "<main>\n");
    html_head(&h);
    html_timeline(&h);
    html_recoveries(&h);
    html_checks(&h);
    html_rounds(&h);
    html_clocks(&h);
    html_trouble(&h);
    html_put(&h, "</main>\n");
    put_end(&h);
    incidents_fini(&h.incidents);
    arena_fini(&h.arena);
    return 0;
}

const struct report report_html = {
    .name = "html",
    .summary = "one page: what broke, every worker over time, recoveries, checks, rounds",
    .file = "report.html",
    .render = render,
};
