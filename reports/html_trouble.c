/* The page's coverage of trouble: which faults struck what in which phase of the job, and which never
 * did. */
#include "reports/html.h"

#include "base/str.h"
#include "faults/fault.h"
#include "harness/trend/trouble.h"

static const char *const families[] = {"process", "node", "network", "clock", "disk", "store"};

static bool was_tried(const struct trouble *t, size_t fault) {
    return trouble_tried(t, fault, TROUBLE_PHASES, TROUBLE_TARGETS);
}

static void put_cell(struct html *h, const struct trouble *t, size_t fault, enum trouble_phase p) {
    size_t n = 0;
    html_put(h, "<td>");
    for (int on = 0; on < TROUBLE_TARGETS; on++)
        if (trouble_tried(t, fault, p, (enum trouble_target)on))
            html_put(h, "%s%s", n++ ? ", " : "", trouble_target_name((enum trouble_target)on));
    html_put(h, n ? "</td>" : "<span class=\"soft\">never</span></td>");
}

static void put_tried(struct html *h, const struct trouble *t) {
    html_put(h, "<table>\n<tr><th>fault</th>");
    for (int p = 0; p < TROUBLE_PHASES; p++)
        html_put(h, "<th>%s</th>", trouble_phase_name((enum trouble_phase)p));
    html_put(h, "</tr>\n");
    for (size_t f = 0; f < faults_n; f++) {
        if (!was_tried(t, f))
            continue;
        html_put(h, "<tr><td>%s</td>", faults[f]->name);
        for (int p = 0; p < TROUBLE_PHASES; p++)
            put_cell(h, t, f, (enum trouble_phase)p);
        html_put(h, "</tr>\n");
    }
    html_put(h, "</table>\n");
}

static void put_never(struct html *h, const struct trouble *t, const char *family) {
    size_t n = 0;
    for (size_t f = 0; f < faults_n; f++) {
        if (was_tried(t, f) || !str_eq(fault_family(faults[f]), family))
            continue;
        html_put(h, n++ ? ", %s" : "<li>%s", faults[f]->name);
    }
    html_put(h, n ? " <span class=\"soft\">(%s)</span></li>\n" : "", family);
}

void html_trouble(struct html *h) {
    struct trouble t;
    size_t tried = 0;
    trouble_init(&t);
    trouble_add(&t, h->run);
    for (size_t f = 0; f < faults_n; f++)
        tried += was_tried(&t, f);
    if (tried) {
        html_put(h,
                 "<section id=\"trouble\">\n<h2>Trouble, and when</h2>\n<p>The phase of the job in "
                 "which each fault met it, and what it struck.</p>\n");
        put_tried(h, &t);
        html_put(h, "<details><summary>%zu faults that this run did not try</summary>\n<ul>\n",
                 faults_n - tried);
        for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
            put_never(h, &t, families[i]);
        html_put(h, "</ul>\n<p class=\"soft\">Several runs together, and the next five scenarios: "
                    "<code>rankquake coverage RUNS</code></p>\n</details>\n</section>\n");
    }
    trouble_fini(&t);
}
