/* Scenarios for AFL++: whatever the bytes are, they are loaded or refused, with sentences that a
 * terminal can show; and what was loaded is, printed, loaded as the same again.
 *
 * An input is files, one behind the other: the first is the scenario, a line "%%% NAME" begins one
 * that it may include, or take its trace from. A line "!KEY=VALUE" before the first is a --set. The
 * loader reads nothing else: its reading of files is replaced by the linker (--wrap). */
#include "base/printable.h"
#include "base/str.h"
#include "base/utf8.h"
#include "harness/scenario/load.h"
#include "harness/scenario/scenario.h"
#include "harness/sim/script.h"
#include "tests/fuzz/fuzzed.h"

#include <assert.h>
#include <ftw.h>

static const char first[] = "scenario.yaml", mark[] = "%%% ";
enum { FILES_MAX = 8, SETS_MAX = 4, SEEDS_MAX = 200 };

/* ---- what the loader takes for files ---- */

static struct part {
    const char *name, *text;
    size_t name_len, len;
} parts[FILES_MAX];
static size_t parts_n;

bool __wrap_source_read_into(const char *file, struct buf *out, struct place p, const char *who,
                             struct diagnostics *d);
bool __wrap_source_read_into(const char *file, struct buf *out, struct place p, const char *who,
                             struct diagnostics *d) {
    const char *name = str_base(file);
    for (size_t i = 0; i < parts_n; i++)
        if (strlen(name) == parts[i].name_len &&
            memcmp(name, parts[i].name, parts[i].name_len) == 0) {
            buf_put(out, parts[i].text, parts[i].len);
            return true;
        }
    diagnostics_add(d, p, "%scannot be opened: it is not there", who);
    return false;
}

bool __wrap_source_read(const char *file, struct diagnostics *d);
bool __wrap_source_read(const char *file, struct diagnostics *d) {
    return __wrap_source_read_into(file, &d->source, (struct place){0}, "", d);
}

/* From the line on behind a mark; the end where there is none. */
static const char *next_part(const char *at, const char *end) {
    for (; at < end; at = memchr(at, '\n', (size_t)(end - at)), at = at ? at + 1 : end)
        if ((size_t)(end - at) >= strlen(mark) && memcmp(at, mark, strlen(mark)) == 0)
            return at;
    return end;
}

static void cut(const char *text, size_t n) {
    const char *end = text + n, *at = next_part(text, end);
    parts[0] = (struct part){first, text, strlen(first), (size_t)(at - text)};
    for (parts_n = 1; at < end && parts_n < FILES_MAX; parts_n++) {
        const char *name = at + strlen(mark), *line = memchr(name, '\n', (size_t)(end - name));
        const char *body = line ? line + 1 : end;
        at = next_part(body, end);
        parts[parts_n] =
            (struct part){name, body, (size_t)((line ? line : end) - name), (size_t)(at - body)};
    }
}

/* Takes the lines that are overrides from the front; NULL-ended. */
static const char *const *take_sets(struct arena *a, const char **text, size_t *n) {
    const char **sets = arena_array(a, const char *, SETS_MAX + 1);
    for (size_t i = 0; i < SETS_MAX && *n && **text == '!'; i++) {
        const char *line = memchr(*text, '\n', *n);
        size_t len = line ? (size_t)(line - *text) : *n;
        sets[i] = arena_strndup(a, *text + 1, len - 1);
        *n -= line ? len + 1 : len;
        *text += line ? len + 1 : len;
    }
    return sets;
}

/* ---- what must hold ---- */

static void check_said(const struct diagnostics *d) {
    const char *s = buf_str(&d->out);
    for (size_t i = 0; i < d->out.len;) {
        unsigned c = 0;
        int n = utf8_read(s + i, d->out.len - i, &c);
        assert(n > 0 && (printable_is(c) || c == '\n' || c == '\t'));
        i += (size_t)n;
    }
    assert(!d->errors == !d->out.len);
}

static struct scenario *load(const char *const *sets, struct diagnostics *d) {
    struct scenario *s = scenario_load(first, sets, d);
    assert(!s == (d->errors > 0));
    check_said(d);
    return s;
}

/* But for the comment that says how the timeline was made. */
static void check_printed(struct scenario *s) {
    struct buf given = {0}, once = {0}, twice = {0};
    struct diagnostics d = {0};
    scenario_print(s, &given);
    s->drawn = NULL;
    scenario_print(s, &once);
    parts[0] = (struct part){first, buf_str(&given), strlen(first), given.len};
    parts_n = 1;
    struct scenario *again = load((const char *const[]){NULL}, &d);
    if (again)
        scenario_print(again, &twice);
    if (!str_eq(buf_str(&once), buf_str(&twice)))
        fprintf(stderr, "%s\nis printed, and loaded as\n%s%s", buf_str(&given), buf_str(&twice),
                buf_str(&d.out));
    assert(str_eq(buf_str(&once), buf_str(&twice)));
    scenario_free(again);
    diagnostics_fini(&d);
    buf_fini(&given);
    buf_fini(&once);
    buf_fini(&twice);
}

/* The same bytes as what else may stand in a file. */
static void read_others(const char *const *sets) {
    struct diagnostics suite = {0}, script = {0};
    sweep_free(scenario_sweep(first, sets, NULL));
    suite_free(suite_load(first, &suite));
    check_said(&suite);
    script_free(script_read(first, &script));
    check_said(&script);
    diagnostics_fini(&suite);
    diagnostics_fini(&script);
}

static void take(const char *bytes, size_t n) {
    struct arena a = {0};
    struct diagnostics d = {0};
    const char *const *sets = take_sets(&a, &bytes, &n);
    cut(bytes, n);
    read_others(sets);
    struct scenario *s = load(sets, &d);
    if (s)
        check_printed(s);
    scenario_free(s);
    diagnostics_fini(&d);
    arena_fini(&a);
}

/* ---- every scenario that we have, with what it includes ---- */

static char *paths[SEEDS_MAX], *scenarios[SEEDS_MAX];
static size_t paths_n, scenarios_n;

static int note(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st, (void)at;
    bool scenario = str_ends(path, ".yaml");
    if (type != FTW_F || (!scenario && !str_ends(path, ".csv")) || paths_n == SEEDS_MAX)
        return 0;
    paths[paths_n++] = strdup(path);
    if (scenario)
        scenarios[scenarios_n++] = paths[paths_n - 1];
    return 0;
}

static void put_file(const char *path, struct buf *out) {
    char block[4096];
    FILE *in = fopen(path, "r");
    for (size_t n; in && (n = fread(block, 1, sizeof(block), in)) > 0;)
        buf_put(out, block, n);
    if (in)
        fclose(in);
}

static void put_seed(int i, struct buf *out) {
    size_t files = 1;
    put_file(scenarios[i], out);
    for (size_t k = 0; k < paths_n && files < FILES_MAX; k++) {
        const char *name = str_base(paths[k]);
        if (paths[k] == scenarios[i] || !memmem(out->data, out->len, name, strlen(name)))
            continue;
        buf_printf(out, "\n%s%s\n", mark, name);
        put_file(paths[k], out);
        files++;
    }
}

static struct fuzzed files = {.take = take, .put_seed = put_seed};

static void find_seeds(void) {
    static const char *const folders[] = {"scenarios", "tests/harness/sim/transcripts",
                                          "tests/live", "tests/seeds"};
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
        nftw(folders[i], note, 8, FTW_PHYS);
    files.seeds = (int)scenarios_n;
}

int main(int argc, char **argv) {
    files.begin = argc == 3 ? find_seeds : NULL; /* for --seeds */
    return fuzzed_main(&files, argc, argv);
}
