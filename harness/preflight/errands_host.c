/* What a host says of itself, and that it is held: for who is going to break things on it for a while. */
#include "harness/preflight/outpost.h"

#include "base/sys/file.h"
#include "harness/carrier/host_facts.h"
#include "harness/carrier/host_record.h"
#include "harness/host/host_hold.h"
#include "harness/host/host_left.h"
#include "harness/host/host_self.h"
#include "harness/preflight/inventory.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void run_self(struct outpost *o, const struct json *asked, struct json_writer *w) {
    (void)o;
    (void)asked;
    host_self_put(w);
    json_object(w, "facts");
    host_facts_put(w);
    json_end_object(w);
}

static void run_inventory(struct outpost *o, const struct json *asked, struct json_writer *w) {
    (void)o;
    (void)asked;
    inventory_put(w, "inventory");
}

/* `rankquake halt` on this host has found us in the log of helpers. Who holds the host is told, and does not take it for a host
 * that was lost. */
static void on_halt(int signo) {
    static const char told[] = "{\"halted\":true}\n";
    (void)signo;
    (void)!write(STDOUT_FILENO, told, sizeof(told) - 1);
    _exit(0);
}

/* {"who", "run"}: this process has the host from now on, until it ends; "by" is who has it already. */
static void run_hold(struct outpost *o, const struct json *asked, struct json_writer *w) {
    struct host_record log = HOST_RECORD_NONE;
    struct err err = {0};
    int r = host_hold_take(json_get_string(asked, "who", "?"), &err);
    if (r == -EBUSY)
        json_put_string(w, "by", err.msg);
    else if (r < 0 && r != -EALREADY)
        json_put_string(w, "error", err.msg);
    if (r < 0 && r != -EALREADY)
        return;
    o->hold = r;
    host_left_mark(json_get_string(asked, "run", "?"));
    signal(SIGTERM, on_halt);
    if (host_record_open_log(&log, json_get_string(asked, "run", "?"), NULL) == 0)
        host_record_note(&log, "begin", host_left_name(), NULL);
    host_record_close(&log);
    json_put_bool(w, "held", true);
}

const struct errand errands_host[] = {
    {"self", run_self, true}, {"inventory", run_inventory, true}, {"hold", run_hold, false}, {0}};
