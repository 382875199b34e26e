/* Asks hosts, before jobs run on them, what would betray a job. */
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "harness/preflight/outpost.h"
#include "harness/preflight/preflight.h"
#include "harness/verbs.h"
#include "harness/verbs/probe_wishes.h"
#include "reports/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct preflight_request {
    const struct arguments *arguments;
    struct arena arena;
    struct preflight preflight;
    struct probe_wishes wishes;
    const char **only, **without, **results;
    bool json;
};

/* ---- what was typed ---- */

static int take_names(struct preflight_request *q, const char *option, const char ***ret) {
    const char *names[64] = {NULL};
    *ret = arguments_all(q->arguments, option);
    for (size_t i = 0; probes[i]; i++)
        names[i] = probes[i]->name;
    for (const char **v = *ret; *v; v++)
        if (!probe_find(*v)) {
            const char *near = str_nearest(*v, names);
            return near ? verb_usage_error(q->arguments->verb,
                                           "%s %s: there is no such probe; did you mean %s?",
                                           option, *v, near)
                        : verb_usage_error(q->arguments->verb,
                                           "%s %s: there is no such probe; preflight --list names "
                                           "them",
                                           option, *v);
        }
    return 0;
}

/* A line each, of which the first word counts; as ssh's and MPI's lists of hosts. */
static int read_hostfile(struct preflight_request *q, const char *path, const char **ret) {
    BUF_FINI struct buf text = {0}, list = {0};
    struct err err = {0};
    if (file_read_plain(path, 1 << 20, &text, &err) < 0)
        return verb_usage_error(q->arguments->verb, "--hostfile %s", err.msg);
    for (char **line = str_split(&q->arena, buf_str(&text), '\n', NULL); *line; line++) {
        char *word = *line + strspn(*line, " \t");
        word[strcspn(word, " \t\r#")] = '\0';
        if (*word)
            buf_printf(&list, "%s%s", list.len ? "," : "", word);
    }
    *ret = arena_strdup(&q->arena, buf_str(&list));
    return 0;
}

static int take_hosts(struct preflight_request *q) {
    const struct arguments *a = q->arguments;
    const char *text = arguments_value(a, "--hosts"), *file = arguments_value(a, "--hostfile");
    const char *option = text ? "--hosts" : "--hostfile";
    struct preflight_host *v = NULL;
    struct err err = {0};
    int code = file && !text ? read_hostfile(q, file, &text) : 0;
    q->preflight.via = arguments_value(a, "--via");
    if (code || !text)
        return code;
    int n = preflight_hosts(text, &q->arena, &v, &err);
    if (n < 0)
        return verb_usage_error(a->verb, "%s %s", option, err.msg);
    if (!q->preflight.via)
        q->preflight.via = "ssh -o BatchMode=yes {host} rankquake";
    if (!strstr(q->preflight.via, "{host}"))
        return verb_usage_error(a->verb, "--via %s: it needs {host} where the host's name goes",
                                q->preflight.via);
    q->preflight.hosts = v;
    q->preflight.hosts_n = (size_t)n;
    return 0;
}

static int take_results(struct preflight_request *q) {
    struct err err = {0};
    q->results = arguments_all(q->arguments, "--results");
    q->preflight.results = (const char *const *)q->results;
    return preflight_check_results(q->preflight.results, &err)
               ? 0
               : verb_usage_error(q->arguments->verb, "--results %s", err.msg);
}

static int take_all(struct preflight_request *q) {
    const struct arguments *a = q->arguments;
    const char *format = arguments_value(a, "--format");
    if (a->files_n)
        return verb_usage_error(a->verb, "%s: hosts are named by --hosts", a->files[0]);
    if (format && !str_eq(format, "text") && !str_eq(format, "json"))
        return verb_usage_error(a->verb, "--format %s is neither text nor json", format);
    q->json = str_eq(format, "json");
    int code = probe_wishes_read(a, &q->arena, &q->wishes);
    q->wishes.shared = arguments_value(a, "--shared");
    code = code ? code : take_names(q, "--probe", &q->only);
    code = code ? code : take_names(q, "--without", &q->without);
    code = code ? code : take_results(q);
    return code ? code : take_hosts(q);
}

/* ---- what is said ---- */

static void tell(void *arg, const char *name, const struct probe_answer *a) {
    const struct preflight_request *q = arg;
    static const char *const plain[] = {"+", "x", "-"}, *const drawn[] = {"✓", "✗", "-"};
    if (q->json)
        return;
    printf("%s %-10s %s", (report_style_of(stdout).unicode ? drawn : plain)[a->status], name,
           a->seen);
    if (a->took_ns >= 0)
        printf(" (%.2f s)", (double)a->took_ns / 1e9);
    printf("\n");
    fflush(stdout);
}

static int list_probes(void) {
    for (size_t i = 0; probes[i]; i++)
        printf("%-10s %s\n", probes[i]->name, probes[i]->text);
    return EXIT_PASS;
}

static int run(struct preflight_request *q) {
    BUF_FINI struct buf out = {0};
    struct json_writer w = {.out = &out};
    q->preflight.given = probe_wishes_text(&q->wishes, &q->arena);
    q->preflight.only = (const char *const *)q->only;
    q->preflight.without = (const char *const *)q->without;
    q->preflight.told = tell;
    q->preflight.arg = q;
    bool well = preflight_run(&q->preflight, &w);
    if (q->json)
        printf("%s\n", buf_str(&out));
    return well ? EXIT_PASS : EXIT_FAIL;
}

static int preflight(const struct arguments *a) {
    struct preflight_request *q = mem_new(struct preflight_request);
    int code = 0;
    q->arguments = a;
    if (arguments_value(a, "--outpost"))
        outpost_serve();
    else if (arguments_value(a, "--list"))
        code = list_probes();
    else if ((code = take_all(q)) == 0)
        code = run(q);
    free(q->only);
    free(q->without);
    free(q->results);
    arena_fini(&q->arena);
    free(q);
    return code;
}

const struct verb verb_preflight = {
    .name = "preflight",
    .usage = "preflight [--hosts HOST,...] [--shared DIR] [options]",
    .summary =
        "ask hosts what would betray a job: versions, limits, clocks, network, shared directory",
    .example = "preflight --probe limits --probe space --space 10",
    .options =
        (const struct verb_option[]){
            {"--hosts", "HOSTS",
             "n0,n1=10.0.0.2: names, and the addresses by which hosts reach each other (default: "
             "this host alone)"},
            {"--hostfile", "FILE", "the same, the first word of each line"},
            {"--via", "WORDS",
             "what starts rankquake on a host (default: ssh -o BatchMode=yes {host} rankquake)"},
            {"--shared", "DIR", "the directory that all hosts are to share"},
            PROBE_WISHES_OPTIONS,
            {"--probe", "NAME", "only this; may be repeated"},
            {"--without", "NAME", "not this; may be repeated"},
            {"--results", "FILE",
             "take in what nccl-tests, fio, dcgmi diag or SuperBench have found; may be repeated"},
            {"--list", NULL, "name the probes, and ask nothing"},
            {"--format", "FORMAT", "text or json, with all figures"},
            {"--outpost", NULL, NULL}, /* outpost.h: on a host that is asked */
            {0}},
    .run = preflight,
};
