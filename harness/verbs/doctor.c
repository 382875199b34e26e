#include "agent/base/buf.h"
#include "faults/fault.h"
#include "harness/doctor/probes.h"
#include "harness/verbs.h"
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

static const char *mark(enum probe_status status, bool unicode) {
    if (status == PROBE_WORKS)
        return unicode ? "✓" : "+";
    return status == PROBE_LACKS ? unicode ? "✗" : "x" : "-";
}

static void print_result(const struct probe *p, const struct probe_result *r, bool unicode) {
    char name[32];
    snprintf(name, sizeof(name), "%s", p->name);
    for (char *c = name; *c; c++)
        if (*c == '_')
            *c = ' ';
    printf("%s %-*s %s\n", mark(r->status, unicode), LEFT, name, r->seen);
    if (r->status != PROBE_LACKS)
        return;
    put_wrapped("lost:", p->gives);
    put_wrapped("mend:", r->mend);
}

struct examination {
    const struct probe_given *given;
    bool unicode;
    int needed, others; /* that lack what they look for */
    struct buf faults;  /* that cannot be injected */
    size_t faults_n;
};

static void note_loss(struct examination *x, const struct probe *p) {
    if (p->demo)
        x->needed++;
    else
        x->others++;
    if (p->fault) {
        buf_printf(&x->faults, "%s%s", x->faults_n ? ", " : "", p->fault);
        x->faults_n++;
    }
}

/* Those that the demo needs, or the others. */
static void examine(struct examination *x, bool demo) {
    puts(demo ? "needed by every scenario" : "\nfor some things");
    for (size_t i = 0; probes[i]; i++) {
        struct probe_result r;
        if (probes[i]->demo != demo)
            continue;
        probe_try(probes[i], x->given, &r);
        print_result(probes[i], &r, x->unicode);
        fflush(stdout);
        if (r.status == PROBE_LACKS)
            note_loss(x, probes[i]);
    }
}

static void print_faults(const struct examination *x) {
    size_t all = 0;
    while (faults[all])
        all++;
    if (x->needed)
        printf("\nfaults: none of %zu can be injected here\n", all);
    else if (x->faults_n)
        printf("\nfaults: %zu of %zu can be injected here, not %s\n", all - x->faults_n, all,
               buf_str(&x->faults));
    else
        printf("\nfaults: all %zu can be injected here\n", all);
}

static int doctor(int argc, char **argv) {
    struct arguments a;
    int code = arguments_read(&a, &verb_doctor, argc, argv);
    if (code)
        return code;
    if (a.files_n) {
        code = verb_usage_error(a.verb, "it takes no file, only options");
        arguments_fini(&a);
        return code;
    }
    struct probe_given given = {.etcd = arguments_value(&a, "--etcd")};
    struct report_style style = report_style_of(stdout);
    struct examination x = {.given = &given, .unicode = style.unicode};
    examine(&x, true);
    examine(&x, false);
    print_faults(&x);
    arguments_fini(&a);
    buf_fini(&x.faults);
    if (x.needed)
        puts("no scenario can run on this host; what is marked above says why");
    else
        printf("the demo can run here%s\n", x.others ? ", with what is marked above left out" : "");
    return x.needed ? EXIT_SKIPPED : EXIT_PASS;
}

const struct verb verb_doctor = {
    .name = "doctor",
    .usage = "doctor [--etcd HOST:PORT]",
    .summary = "what this host can do and what it cannot, each with the reason and the mend",
    .example = "doctor",
    .options =
        (const struct verb_option[]){
            {"--etcd", "HOST:PORT", "look at this store, too: does it forget its history?"}, {0}},
    .main = doctor,
};
