/* Prints the answers to all host questions, and what becomes of each fault: by them, or as it was
 * tried. */
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "faults/need.h"
#include "harness/doctor/host_questions.h"
#include "harness/doctor/outlook.h"
#include "harness/verbs/doctor_hosts.h"
#include "harness/verbs/wanted_hosts.h"
#include "harness/verbs/doctor_trials.h"
#include "reports/report.h"

#include <stdio.h>
#include <string.h>

enum { LEFT = 15, COLUMNS = 96 };

static void put_wrapped(const char *label, const char *text) {
    printf("  %*s", LEFT, "");
    size_t column = strlen(label), room = COLUMNS - LEFT - 2;
    fputs(label, stdout);
    while (*text) {
        size_t word = strcspn(text, " ");
        if (column + word + 1 > room) {
            printf("\n  %*s", LEFT + 5, "");
            column = 5;
        }
        printf(" %.*s", (int)word, text);
        column += word + 1;
        text += word + (text[word] == ' ');
    }
    putchar('\n');
}

static const char *mark(enum question_status status, bool unicode) {
    if (status == QUESTION_WORKS)
        return unicode ? "✓" : "+";
    return status == QUESTION_LACKS ? unicode ? "✗" : "x" : "-";
}

static void print_result(const struct host_question *p, const struct question_result *r,
                         bool unicode) {
    char name[32];
    snprintf(name, sizeof(name), "%s", p->name);
    for (char *c = name; *c; c++)
        if (*c == '_')
            *c = ' ';
    printf("%s %-*s %s\n", mark(r->status, unicode), LEFT, name, r->seen);
    if (r->status != QUESTION_LACKS)
        return;
    put_wrapped("lost:", p->gives);
    put_wrapped("fix:", r->fix);
}

enum {
#define X(name) QUESTION_NUMBER_##name,
    HOST_QUESTIONS(X)
#undef X
        QUESTIONS_N
};

struct examination {
    const struct question_given *given;
    bool unicode, quiet;
    struct question_result answers[QUESTIONS_N];
    int missing[QUESTION_PARTS];       /* that are needed and lack what they look for */
    int others;                        /* and those that are not */
    struct buf faults[QUESTION_PARTS]; /* that cannot be injected, "a, b" */
    struct outlook *outlooks;          /* as the table of faults */
    struct doctor_trials trials;
};

static void note_loss(struct examination *x, const struct host_question *p) {
    struct buf *lost = &x->faults[p->part];
    if (p->demo)
        x->missing[p->part]++;
    else
        x->others++;
    for (size_t i = 0; faults[i]; i++)
        if (faults[i]->needs & p->need)
            buf_printf(lost, "%s%s", lost->len ? ", " : "", faults[i]->name);
}

/* What only a wire can do is not done to processes on any host. */
static void note_no_wire(struct examination *x) {
    struct buf *lost = &x->faults[QUESTION_FOR_PROCESSES];
    for (size_t i = 0; faults[i]; i++)
        if (faults[i]->needs & FAULT_NEEDS_OF_NAMESPACES)
            buf_printf(lost, "%s%s", lost->len ? ", " : "", faults[i]->name);
}

static bool is_asked(const struct host_question *p, bool parts, bool demo) {
    return parts ? p->part != QUESTION_FOR_ALL : p->part == QUESTION_FOR_ALL && p->demo == demo;
}

/* Those that every scenario needs, those of which nodes are made, or the others. */
static void examine(struct examination *x, const char *heading, bool parts, bool demo) {
    if (!x->quiet)
        puts(heading);
    for (size_t i = 0; host_questions[i]; i++) {
        struct question_result *r = &x->answers[i];
        if (!is_asked(host_questions[i], parts, demo))
            continue;
        question_try(host_questions[i], x->given, r);
        if (!x->quiet)
            print_result(host_questions[i], r, x->unicode);
        fflush(stdout);
        if (r->status == QUESTION_LACKS)
            note_loss(x, host_questions[i]);
    }
}

/* The kind of nodes that `auto` would choose; QUESTION_FOR_ALL: none can be made. */
static enum question_part chosen(const struct examination *x) {
    return !x->missing[QUESTION_FOR_NAMESPACES]  ? QUESTION_FOR_NAMESPACES
           : !x->missing[QUESTION_FOR_PROCESSES] ? QUESTION_FOR_PROCESSES
                                                 : QUESTION_FOR_ALL;
}

static size_t count_names(const char *list) {
    size_t n = *list != 0;
    for (; *list; list++)
        n += *list == ',';
    return n;
}

/* What each way of making nodes would allow: every fault less what is lost. */
static void print_allowed(const struct examination *x, const char *name, enum question_part part) {
    const char *all = buf_str(&x->faults[QUESTION_FOR_ALL]), *own = buf_str(&x->faults[part]);
    if (x->missing[part])
        printf("  %-11s are not possible\n", name);
    else if (!*all && !*own)
        printf("  %-11s allow every fault\n", name);
    else
        printf("  %-11s allow every fault but %s%s%s\n", name, all, *all && *own ? ", " : "", own);
}

static void print_isolation(const struct examination *x) {
    enum question_part part = chosen(x);
    printf("\nisolation: %s\n", part == QUESTION_FOR_NAMESPACES  ? "namespaces would be used"
                                : part == QUESTION_FOR_PROCESSES ? "processes would be used"
                                                                 : "no nodes can be made here");
    print_allowed(x, "namespaces", QUESTION_FOR_NAMESPACES);
    print_allowed(x, "processes", QUESTION_FOR_PROCESSES);
    if (part != QUESTION_FOR_NAMESPACES)
        printf("  to have namespaces: %s\n", question_flag_for_namespaces());
}

static void print_faults(const struct examination *x) {
    enum question_part part = chosen(x);
    BUF_FINI struct buf lost = {0};
    size_t all = 0;
    while (faults[all])
        all++;
    buf_puts(&lost, buf_str(&x->faults[QUESTION_FOR_ALL]));
    if (part != QUESTION_FOR_ALL && x->faults[part].len)
        buf_printf(&lost, "%s%s", lost.len ? ", " : "", buf_str(&x->faults[part]));
    size_t n = count_names(buf_str(&lost));
    if (x->missing[QUESTION_FOR_ALL] || part == QUESTION_FOR_ALL)
        printf("\nfaults: none of %zu can be injected here\n", all);
    else if (n)
        printf("\nfaults: %zu of %zu can be injected here, not %s\n", all - n, all, buf_str(&lost));
    else
        printf("\nfaults: all %zu can be injected here\n", all);
}

/* ---- each fault ---- */

static const char *const outlook_words[OUTLOOKS_N] = {"works", "works with less", "cannot", "open"};
static const char *const outlook_labels[OUTLOOKS_N] = {
    "work:", "work with less:", "cannot:", "open:"};

static bool is_alike(const struct outlook *a, const struct outlook *b) {
    return a->kind == b->kind && str_eq(a->why ? a->why : "", b->why ? b->why : "");
}

/* Where some were tried, the others are not asked for. */
static bool is_told(const struct examination *x, size_t fault) {
    return !x->trials.wanted || x->trials.wanted[fault];
}

static void print_outlook(const struct outlook *o, const char *names) {
    put_wrapped(outlook_labels[o->kind], names);
    if (o->why)
        put_wrapped(o->kind == OUTLOOK_LESS ? "how:" : "why:", o->why);
    if (o->fix)
        put_wrapped("fix:", o->fix);
}

/* Those of which the same is to be said stand together, behind the first of them. */
static void print_alike(const struct examination *x, size_t i) {
    BUF_FINI struct buf names = {0};
    size_t first = i;
    for (size_t k = 0; faults[k]; k++) {
        if (!is_told(x, k) || !is_alike(&x->outlooks[i], &x->outlooks[k]))
            continue;
        first = names.len ? first : k;
        buf_printf(&names, "%s%s", names.len ? ", " : "", faults[k]->name);
    }
    if (first == i)
        print_outlook(&x->outlooks[i], buf_str(&names));
}

static void print_outlooks(const struct examination *x) {
    puts(x->trials.wanted ? "\neach fault, as it was tried" : "\neach fault, by what was tried");
    for (int kind = 0; kind < OUTLOOKS_N; kind++)
        for (size_t i = 0; faults[i]; i++)
            if (is_told(x, i) && (int)x->outlooks[i].kind == kind)
                print_alike(x, i);
}

static void put_questions(struct json_writer *w, const struct examination *x) {
    static const char *const status[] = {"works", "lacks", "unasked"};
    json_array(w, "questions");
    for (size_t i = 0; host_questions[i]; i++) {
        const struct question_result *r = &x->answers[i];
        json_object(w, NULL);
        json_put_string(w, "name", host_questions[i]->name);
        json_put_string(w, "status", status[r->status]);
        json_put_string(w, "seen", r->seen);
        json_put_string(w, "fix", r->status == QUESTION_LACKS ? r->fix : NULL);
        json_end_object(w);
    }
    json_end_array(w);
}

static void put_outlooks(struct json_writer *w, const struct examination *x) {
    json_array(w, "faults");
    for (size_t i = 0; faults[i]; i++) {
        struct outlook o = x->outlooks[i];
        if (!is_told(x, i))
            continue;
        json_object(w, NULL);
        json_put_string(w, "name", faults[i]->name);
        json_put_string(w, "family", fault_family(faults[i]));
        json_put_string(w, "here", outlook_words[o.kind]);
        json_put_string(w, "why", o.why);
        json_put_string(w, "fix", o.fix);
        if (x->trials.wanted)
            json_put_string(w, "seen", x->trials.trials.outcomes[i].seen);
        json_end_object(w);
    }
    json_end_array(w);
}

static void print_json(const struct examination *x) {
    static const char *const isolation[] = {"none", "namespaces", "processes"};
    BUF_FINI struct buf out = {0};
    struct json_writer w = {.out = &out};
    json_object(&w, NULL);
    json_put_string(&w, "isolation", isolation[chosen(x)]);
    json_put_bool(&w, "tried", x->trials.wanted);
    put_questions(&w, x);
    put_outlooks(&w, x);
    json_end_object(&w);
    puts(buf_str(&out));
}

static void print_tried(const struct examination *x) {
    size_t n[OUTLOOKS_N] = {0}, all = 0;
    for (size_t i = 0; faults[i]; i++)
        if (x->trials.wanted[i]) {
            all++;
            n[x->outlooks[i].kind]++;
        }
    printf("\nfaults: %zu of %zu that were tried work here, %zu with less, %zu cannot be had, "
           "%zu stay open\n",
           n[OUTLOOK_WORKS], all, n[OUTLOOK_LESS], n[OUTLOOK_CANNOT], n[OUTLOOK_OPEN]);
    if (x->trials.trials.dir)
        printf("what was recorded is in %s\n", x->trials.trials.dir);
}

static void print_rest(const struct examination *x, bool runs) {
    print_isolation(x);
    print_outlooks(x);
    if (x->trials.wanted)
        print_tried(x);
    else
        print_faults(x);
    if (!runs)
        puts("no scenario can run on this host; what is marked above says why");
    else
        printf("the demo can run here%s\n",
               x->others ? ", with what is marked above left out" : "");
}

/* What is to be expected of each by the answers, and where that is asked for, what came of it. */
static int look_at_faults(struct examination *x) {
    x->outlooks = arena_array(&x->trials.trials.arena, struct outlook, faults_n);
    for (size_t i = 0; i < faults_n; i++)
        x->outlooks[i] = outlook_of(faults[i], x->answers);
    return x->trials.wanted ? doctor_trials_run(&x->trials, x->outlooks, !x->quiet) : 0;
}

static int examine_all(struct examination *x) {
    note_no_wire(x);
    examine(x, "needed by every scenario", false, true);
    examine(x, "\nhow nodes are kept apart: namespaces, else processes", true, false);
    examine(x, "\nfor some things", false, false);
    bool runs = !x->missing[QUESTION_FOR_ALL] && chosen(x) != QUESTION_FOR_ALL;
    int code = look_at_faults(x);
    if (code)
        return code;
    if (x->quiet)
        print_json(x);
    else
        print_rest(x, runs);
    return runs ? EXIT_PASS : EXIT_SKIPPED;
}

static int doctor(const struct arguments *a) {
    struct question_given given = {.etcd = arguments_value(a, "--etcd")};
    const char *format = arguments_value(a, "--format");
    if (a->files_n)
        return verb_usage_error(a->verb, "it takes no file, only options");
    if (format && !str_eq(format, "text") && !str_eq(format, "json"))
        return verb_usage_error(a->verb, "--format is text or json");
    if (wanted_hosts_asked(a))
        return doctor_hosts(a);
    struct report_style style = report_style_of(stdout);
    static struct examination x;
    x = (struct examination){
        .given = &given, .unicode = style.unicode, .quiet = format && str_eq(format, "json")};
    int code = doctor_trials_read(a, &x.trials);
    code = code ? code : examine_all(&x);
    for (size_t i = 0; i < QUESTION_PARTS; i++)
        buf_fini(&x.faults[i]);
    doctor_trials_fini(&x.trials);
    return code;
}

const struct verb verb_doctor = {
    .name = "doctor",
    .usage = "doctor [--faults WHICH] [--isolation KIND] [--etcd HOST:PORT] [--provider NAME "
             "--hosts A,B] "
             "[--format json]",
    .summary = "say what this host can do and what it cannot, each with the reason and a fix",
    .example = "doctor",
    .options =
        (const struct verb_option[]){
            {"--faults", "WHICH",
             "try each of these faults in scratch nodes: all, families, names; A,B,..."},
            {"--isolation", "KIND",
             "with --faults: how the nodes are kept apart, auto, namespaces or processes"},
            {"--keep", NULL, "with --faults: keep what was recorded"},
            {"--etcd", "HOST:PORT", "also look at this store: does it compact its history?"},
            {"--provider", "NAME",
             "ask other hosts in place of this one what they can do: ssh (default with hosts), "
             "slurm "
             "or exec, a command each"},
            {"--hosts", "A,B,..",
             "which: names that ssh or Slurm knows; with exec one command [those of this "
             "allocation of Slurm]"},
            {"--hostfile", "FILE", "the same from a file, one a line"},
            {"--ssh", "COMMAND",
             "what stands before the host [ssh -o BatchMode=yes -o ConnectTimeout=10]"},
            {"--format", "FORMAT", "text (for people, default) or json"},
            {0}},
    .run = doctor,
};
