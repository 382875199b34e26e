/* Prints what `rankrun status` has found, for people and as JSON. */
#include "agent/job_status.h"
#include "agent/status.h"
#include "base/json.h"
#include "base/sys/printing.h"
#include "base/sys/process.h"

#include <inttypes.h>
#include <stdio.h>

static const char *outcome_word(enum head_outcome o) {
    return o == OUTCOME_SUCCEEDED ? "succeeded" : o == OUTCOME_FAILED ? "failed" : NULL;
}

static bool has_failure(const struct failure *f) {
    return f->uid[0] || f->error[0];
}

static const char *name_of(const struct job_status *s, const char *uid) {
    const struct job_member *m = job_status_member(s, uid);
    return m && m->value.node[0] ? m->value.node : uid;
}

static int left(const struct job_status *s) {
    return s->cur.max_restarts - s->restarts;
}

static size_t spares(const struct job_status *s) {
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += !s->members[i].planned;
    return n;
}

/* ---- text ---- */

static void print_failure(const struct failure *f) {
    char how[64], where[160] = "";
    if (!has_failure(f))
        return;
    if (f->rank >= 0)
        snprintf(where, sizeof(where), ", rank %d, pid %" PRId64 ": %s", f->rank, f->pid,
                 process_status_text(f->wait_status, how, sizeof(how)));
    printing_line(stdout, "first failure  %s%s%s%s", f->node[0] ? f->node : "of no node", where,
                  f->error[0] ? ": " : "", f->error);
}

static void print_head(const struct job_status *s) {
    const struct head_value *h = &s->head;
    const char *outcome = outcome_word(h->outcome);
    printing_line(stdout, "job            %s, incarnation %s, revision %" PRId64, s->run_id,
                  s->cur.inc, s->revision);
    printf("phase          %s%s%s, round %" PRId64 "\n", job_status_phase(s), outcome ? ": " : "",
           outcome ? outcome : "", s->round);
    printf("nodes          %d in the round (%d to %d), %zu waiting; world %d\n", s->nodes,
           s->cur.min, s->cur.max, spares(s), s->world);
    printf("restarts       %d of %d used, %d left\n", s->restarts, s->cur.max_restarts, left(s));
    printing_line(stdout, "coordinator    %s", s->lead[0] ? name_of(s, s->lead) : "none");
    if (h->master_addr[0])
        printing_line(stdout, "master         %s:%d", h->master_addr, h->master_port);
    print_failure(&h->failure);
    if (s->unread)
        printf("not read       %zu value%s: another version of rankrun wrote %s\n", s->unread,
               s->unread == 1 ? "" : "s", s->unread == 1 ? "it" : "them");
}

static void beat_text(const struct job_status *s, const struct job_member *m, char *out,
                      size_t size) {
    if (m->beat_ns >= 0)
        snprintf(out, size, "after %" PRId64 " ms", m->beat_ns / 1000000);
    else if (m->ended)
        snprintf(out, size, "session ended");
    else if (!m->session || s->head.phase == HEAD_CLOSED)
        snprintf(out, size, "-");
    else
        snprintf(out, size, "none in %" PRId64 " ms", 2 * s->cur.timing.hb_ns / 1000000);
}

static void print_member(const struct job_status *s, const struct job_member *m) {
    char ranks[32] = "-", group[16] = "-", beat[48];
    if (m->planned) {
        snprintf(group, sizeof(group), "%d", m->plan.group_rank);
        snprintf(ranks, sizeof(ranks), m->value.slots > 1 ? "%d-%d" : "%d", m->plan.rank_base,
                 m->plan.rank_base + m->value.slots - 1);
    }
    beat_text(s, m, beat, sizeof(beat));
    printing_line(stdout, "%-5s  %-16s  %-16s  %-9s  %5d  %-10s  %-9s  %s", group,
                  m->value.node[0] ? m->value.node : m->uid, m->value.addr, ranks, m->value.slots,
                  m->value.role, job_member_state(s, m), beat);
}

void status_print_text(const struct job_status *s) {
    print_head(s);
    if (s->n)
        printf("\n%-5s  %-16s  %-16s  %-9s  %5s  %-10s  %-9s  %s\n", "GROUP", "NODE", "ADDRESS",
               "RANKS", "SLOTS", "ROLE", "STATE", "NEXT BEAT");
    for (size_t i = 0; i < s->n; i++)
        print_member(s, &s->members[i]);
}

/* ---- JSON ---- */

static void put_failure(struct json_writer *w, const struct failure *f) {
    char how[64];
    if (!has_failure(f)) {
        json_put_null(w, "first_failure");
        return;
    }
    json_object(w, "first_failure");
    json_put_string(w, "node", f->node);
    if (f->rank >= 0) {
        json_put_i64(w, "rank", f->rank);
        json_put_i64(w, "local_rank", f->local_rank);
        json_put_i64(w, "pid", f->pid);
        json_put_string(w, "status", process_status_text(f->wait_status, how, sizeof(how)));
    }
    json_put_string(w, "error", f->error);
    json_end_object(w);
}

static void put_member(struct json_writer *w, const struct job_status *s,
                       const struct job_member *m) {
    json_object(w, NULL);
    json_put_string(w, "uid", m->uid);
    json_put_string(w, "node", m->value.node);
    json_put_string(w, "addr", m->value.addr);
    json_put_string(w, "role", m->value.role);
    json_put_i64(w, "slots", m->value.slots);
    json_put_string(w, "state", job_member_state(s, m));
    json_put_bool(w, "spare", !m->planned);
    if (m->planned) {
        json_put_i64(w, "group_rank", m->plan.group_rank);
        json_put_i64(w, "first_rank", m->plan.rank_base);
    }
    json_put_known(w, "next_beat_ms", m->beat_ns >= 0, m->beat_ns / 1000000);
    json_end_object(w);
}

static void put_round(struct json_writer *w, const struct job_status *s) {
    const struct head_value *h = &s->head;
    json_put_string(w, "run_id", s->run_id);
    json_put_string(w, "incarnation", s->cur.inc);
    json_put_i64(w, "revision", s->revision);
    json_put_string(w, "phase", job_status_phase(s));
    json_put_string(w, "outcome", outcome_word(h->outcome));
    json_put_i64(w, "round", s->round);
    json_put_i64(w, "nodes", s->nodes);
    json_put_i64(w, "nodes_min", s->cur.min);
    json_put_i64(w, "nodes_max", s->cur.max);
    json_put_i64(w, "world", s->world);
    json_put_i64(w, "restarts", s->restarts);
    json_put_i64(w, "restarts_max", s->cur.max_restarts);
    json_put_i64(w, "restarts_left", left(s));
    json_put_string(w, "coordinator", s->lead[0] ? name_of(s, s->lead) : NULL);
    json_put_string(w, "master_addr", h->master_addr[0] ? h->master_addr : NULL);
    json_put_i64(w, "master_port", h->master_port);
    json_put_i64(w, "beat_ms", s->cur.timing.hb_ns / 1000000);
    json_put_i64(w, "not_read", (int64_t)s->unread);
}

void status_print_json(const struct job_status *s) {
    BUF_FINI struct buf b = {0};
    struct json_writer w = {.out = &b};
    json_object(&w, NULL);
    put_round(&w, s);
    put_failure(&w, &s->head.failure);
    json_array(&w, "members");
    for (size_t i = 0; i < s->n; i++)
        put_member(&w, s, &s->members[i]);
    json_end_array(&w);
    json_end_object(&w);
    puts(buf_str(&b));
}
