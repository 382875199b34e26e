/* What is kept between runs: its keys for a CI server, and the whole of it to and from another machine. */
#include "harness/verbs.h"

#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/printing.h"
#include "harness/plan/building.h"
#include "harness/play/parcel.h"
#include "harness/play/selection.h"
#include "harness/play/shard.h"
#include "harness/play/suite.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* ---- of scenarios ---- */

struct cache_request {
    struct selection selection;
    struct scenario_files files;
    const char **sets;
    bool each;
};

static int read_scenarios(struct cache_request *q, const struct arguments *a) {
    static const char *const no_tags[] = {NULL};
    int code = 0;
    q->files.trusted = true;
    q->sets = arguments_sets(a, &q->selection.arena);
    q->selection.sets = q->sets;
    q->selection.tags = no_tags;
    q->selection.verb = a->verb;
    for (size_t i = 1; i < a->files_n && code == 0; i++)
        code = files_add(&q->files, a->verb, a->files[i]);
    return code ? code : selection_read(&q->selection, &q->files);
}

static int add_key(struct cache_request *q, const struct selected *l, struct sha256 *all) {
    struct err err = {0};
    char key[65], built[65];
    int r = plan_check_host(l->plan, &err);
    if (r == 0)
        r = control_key(l->plan, suite_bin(&q->selection.arena), key, &err);
    if (r) {
        fprintf(stderr, "rankquake cache: %s: %s\n", l->scenario->file, err.msg);
        return q->each ? EXIT_SKIPPED : 0; /* one that cannot run here has nothing to be kept */
    }
    sha256_update(all, key, sizeof(key));
    if (q->each && l->scenario->job.build.run &&
        building_key(&l->scenario->job.build, built, NULL) == 0)
        printing_line(stdout, "%s  build of %s  %s", built, l->scenario->name, l->file);
    if (q->each)
        printing_line(stdout, "%s  %s  %s", key, l->scenario->name, l->file);
    return 0;
}

/* One word, by which a CI server keeps its folder: another when any control run is another. */
static int print_key(struct cache_request *q) {
    struct utsname host;
    struct sha256 all;
    char hex[65];
    int code = 0;
    sha256_init(&all);
    for (size_t i = 0; i < q->selection.n && code == 0; i++)
        code = add_key(q, &q->selection.v[i], &all);
    sha256_hex(&all, hex);
    if (code == 0 && !q->each)
        printf("rankquake-%s-%s-%.16s\n", RANKQUAKE_VERSION,
               uname(&host) == 0 ? host.machine : "unknown", hex);
    return code;
}

static int of_scenarios(const struct arguments *a, bool times) {
    struct cache_request *q = mem_new(struct cache_request);
    BUF_FINI struct buf text = {0};
    q->each = arguments_value(a, "--each");
    int code = a->files_n > 1 ? read_scenarios(q, a)
                              : verb_usage_error(a->verb, "which scenarios? cache %s FILE|DIR...",
                                                 a->files[0]);
    if (code == 0 && times) {
        shard_put_times(&q->selection, &text);
        fputs(buf_str(&text), stdout);
    } else if (code == 0) {
        code = print_key(q);
    }
    selection_fini(&q->selection);
    files_fini(&q->files);
    free(q);
    return code;
}

/* ---- of all that is kept ---- */

static int list_cache(const struct arguments *a) {
    TEXTS_FINI struct texts names = {0};
    struct err err = {0};
    if (a->files_n > 1)
        return verb_usage_error(a->verb, "cache list takes nothing more");
    if (parcel_list(&names, &err) < 0)
        return verb_broken(a->verb, &err);
    for (size_t i = 0; i < names.n; i++)
        printing_line(stdout, "%s", names.v[i]);
    return EXIT_PASS;
}

static int carry(const struct arguments *a, bool in) {
    struct parcel_sum sum = {0};
    struct err err = {0};
    if (a->files_n != 2)
        return verb_usage_error(a->verb, "cache %s FILE: name one file", a->files[0]);
    int code = in ? parcel_import(a->files[1], &sum, &err) : parcel_export(a->files[1], &sum, &err);
    if (code < 0) {
        verb_broken(a->verb, &err);
        return in ? EXIT_USAGE_ERROR : EXIT_BROKEN;
    }
    printf("%s %zu files, %" PRId64 " kB", in ? "took in" : "wrote", sum.files, sum.bytes / 1024);
    if (in)
        printf("; %zu were here already", sum.kept);
    putchar('\n');
    return EXIT_PASS;
}

static int cache(const struct arguments *a) {
    const char *what = a->files_n ? a->files[0] : "";
    if (str_eq(what, "key") || str_eq(what, "times"))
        return of_scenarios(a, str_eq(what, "times"));
    if (str_eq(what, "list"))
        return list_cache(a);
    if (str_eq(what, "export") || str_eq(what, "import"))
        return carry(a, str_eq(what, "import"));
    return verb_usage_error(a->verb, *what ? "there is no cache %s" : "cache what?%s", what);
}

const struct verb verb_cache = {
    .name = "cache",
    .usage = "cache key|times FILE|DIR..., cache list, or cache export|import FILE",
    .summary = "what is kept between runs: its key for a CI server; carry it to another machine",
    .example = "cache key scenarios/smoke.yaml",
    .operands = "FILE",
    .options =
        (const struct verb_option[]){
            {"--each", NULL,
             "with key: the key of each control run and each build, a line each, and no common "
             "one"},
            {"--set", "KEY=VALUE", "overrides a value of the files, as for run; may be repeated"},
            {"--launcher", "LAUNCHER", "as for run"},
            {0}},
    .run = cache,
};
