/* options_manual: what rankrun says of its command line: to people, as a manual page, and to
 * shells. */
#include "agent/options.h"
#include "agent/options_given.h"
#include "base/completion.h"
#include "base/manual.h"
#include "base/str.h"

#include <string.h>

static const char *const synopsis[] = {
    "rankrun [options] PROGRAM [arguments]    start PROGRAM on this node of an elastic job",
    "rankrun -H HOST,... [options] PROGRAM    the same on each host, one command for all",
    "rankrun -H HOST,... --everywhere PROGRAM  run PROGRAM once on each host, no job at all",
    "rankrun store [--host ADDR] [--port PORT]  serve the embedded store, and GET /metrics",
    "rankrun status --rdzv-endpoint HOST[:PORT] --rdzv-id ID   what a job is doing",
    "rankrun outcome [--dir DIR] srun ... rankrun ...  run that, and exit as the job did",
    NULL,
};

static const char about[] =
    "Takes torchrun's command line; dashes and underscores are one, every option may also come\n"
    "as PET_<NAME>. A .py file runs as ${PYTHON_EXEC:-python3} -u, another program as it is.\n";

static const char conf[] =
    "--rdzv-conf: profile=fast|default, hb, fence, hard, suspect, admit [1s], stop_timeout "
    "[2s],\n"
    "  give_up [300s] (150ms, 2s), join_timeout [600], last_call_timeout [30] (seconds or "
    "2s),\n"
    "  attempt=TEXT, lifeline=on|off [on], max_free_rounds_per_hour=N [500],\n"
    "  quarantine=auto|always|never [auto]; of etcd also timeout [600], etcd_prefix;\n"
    "  of stores elsewhere protocol=http|https, cacert, cert, key (files); of an embedded one\n"
    "  token_file (or the variable RANKRUN_STORE_TOKEN), and to serve it by https store_cert,\n"
    "  store_key, store_client_ca (files), of etcd-v3 user, password, password_file (or the\n"
    "  variable RANKRUN_STORE_PASSWORD)\n"
    "\nSeveral nodes need a store, --rdzv-endpoint=HOST, or fixed ranks: --node-rank and\n"
    "--master-addr on each. Under srun all of that follows from Slurm's variables, in the pods of\n"
    "an Indexed Job with --nnodes from Kubernetes': docs/clusters.md.\n";

static const char within_limits[] =
    "  Within that: a request 2 MB that come in 30 s, 131072 keys looked at by one, 8192\n"
    "  leases, 128 watches of ranges that are no run's. An answer or a watch that is read too\n"
    "  slowly ends after 10 s, or 1 s where others wait. GET /metrics counts who was kept\n"
    "  within a limit.\n";

static const char of_status[] =
    "rankrun status, with --rdzv-endpoint, --rdzv-id, --rdzv-backend, --rdzv-conf as the job:\n";

static const char exits[] =
    "Exit codes: 0 the job succeeded, 1 it failed, 64 usage, 69 the store could not be\n"
    "reached, 128+n left on signal n. Of status: 0 found, 1 no such run, 64, 69. Of outcome: the\n"
    "job's where an agent has told it, else the command's own.\n";

/* ---- for people ---- */

/* ROW_JOB means all that a job takes, another kind what that alone takes. */
static bool is_shown(const struct options_row *r, int verb) {
    bool of_job = r->verb & ROW_JOB && r->verb != ROW_ALL;
    return r->help && (verb == ROW_JOB ? of_job : r->verb == verb);
}

static void print_rows(FILE *out, int verb) {
    for (const struct options_row *r = options_rows; r->name; r++) {
        char left[64];
        if (!is_shown(r, verb))
            continue;
        snprintf(left, sizeof(left), "%s%c%s--%s %s", r->letter ? "-" : "",
                 r->letter ? r->letter : ' ', r->letter ? ", " : "   ", r->name,
                 r->value ? r->value : "");
        fprintf(out, "  %-38s %s\n", left, r->help);
    }
}

void options_print_help(FILE *out) {
    for (const char *const *line = synopsis; *line; line++)
        fprintf(out, "%s\n", *line);
    fprintf(out, "\n%s\n", about);
    print_rows(out, ROW_JOB);
    fprintf(out, "\n%s\nrankrun store:\n", conf);
    print_rows(out, ROW_STORE);
    fprintf(out, "%s\n%s", within_limits, of_status);
    print_rows(out, ROW_STATUS);
    fputs("\nrankrun outcome:\n", out);
    print_rows(out, ROW_OUTCOME);
    fputs("\n", out);
    print_rows(out, ROW_ALL);
    fprintf(out, "\n%s", exits);
}

/* ---- as tables of base/manual.h ---- */

enum { EACH = 2 }; /* an option of a job and of status is one of both */

static const char *dashed(struct arena *a, const char *name) {
    return arena_printf(a, "--%s", name);
}

static struct manual_option *new_list(struct arena *a) {
    size_t n = 1;
    for (const struct options_row *r = options_rows; r->name; r++)
        n += EACH;
    return arena_array(a, struct manual_option, n);
}

static const struct manual_option *list_shown(struct arena *a, int verb) {
    struct manual_option *v = new_list(a);
    size_t n = 0;
    for (const struct options_row *r = options_rows; r->name; r++)
        if (is_shown(r, verb))
            v[n++] = (struct manual_option){.letter = r->letter,
                                            .name = dashed(a, r->name),
                                            .value = r->value,
                                            .text = r->help};
    return v;
}

static const struct manual_option *list_typed(struct arena *a) {
    struct manual_option *v = new_list(a);
    size_t n = 0;
    for (const struct options_row *r = options_rows; r->name; r++) {
        struct manual_option o = {
            .letter = r->letter, .name = dashed(a, r->name), .value = r->value, .text = r->help};
        bool all = (r->verb & ROW_SAYS) == ROW_SAYS;
        o.command = all                    ? NULL
                    : r->verb & ROW_JOB    ? ""
                    : r->verb & ROW_STORE  ? "store"
                    : r->verb & ROW_STATUS ? "status"
                                           : "outcome";
        v[n++] = o;
        if (!all && (r->verb & ROW_RDZV) == ROW_RDZV) {
            o.command = "status";
            v[n++] = o;
        }
    }
    return v;
}

void options_put_manual(struct buf *out) {
    ARENA_FINI struct arena a = {0};
    static const char *const see_also[] = {"rankquake", "rankprobe", "ranktrain", NULL};
    const struct manual_part parts[] = {
        {.title = "DESCRIPTION", .text = about},
        {.title = "OPTIONS OF A JOB", .options = list_shown(&a, ROW_JOB), .text_after = conf},
        {.title = "OPTIONS OF THE STORE",
         .options = list_shown(&a, ROW_STORE),
         .text_after = within_limits},
        {.title = "OPTIONS OF STATUS", .text = of_status, .options = list_shown(&a, ROW_STATUS)},
        {.title = "OPTIONS OF OUTCOME", .options = list_shown(&a, ROW_OUTCOME)},
        {.title = "OTHER OPTIONS", .options = list_shown(&a, ROW_ALL)},
        {.title = "EXIT STATUS", .text = exits},
        {0},
    };
    manual_put(out,
               &(struct manual_page){.name = "rankrun",
                                     .version = RANKQUAKE_VERSION,
                                     .summary = "elastic launcher and node agent of a training job",
                                     .synopsis = synopsis,
                                     .parts = parts,
                                     .see_also = see_also});
}

/* ---- for shells ---- */

void options_put_script(struct buf *out, const char *shell) {
    completion_script(out, shell, "rankrun", "--words");
}

static bool values(const char *name, struct buf *out) {
    if (str_eq(name, "N"))
        return true; /* a number */
    if (!str_eq(name, "MIN:MAX") && !str_eq(name, "gpu") && !str_eq(name, "cpu") &&
        !str_eq(name, "auto"))
        return false;
    if (!str_eq(name, "MIN:MAX"))
        buf_printf(out, "%s\n", name);
    return true;
}

void options_put_words(struct buf *out, const char *const *words) {
    static const struct completion_command commands[] = {
        {.name = "store", .text = "serve the embedded store, and GET /metrics"},
        {.name = "status", .text = "what a job is doing"},
        {.name = "outcome", .text = "run srun or the like, and exit as the job did"},
        {0},
    };
    ARENA_FINI struct arena a = {0};
    const struct completion c = {
        .commands = commands, .options = list_typed(&a), .takes_program = true, .values = values};
    size_t n = 0;
    while (words[n])
        n++;
    completion_words(out, &c, words, n);
}
