/* rankrun: elastic launcher and node agent. */
#include "agent/agent.h"
#include "agent/hosts/fleet.h"
#include "agent/hosts/remote.h"
#include "agent/options.h"
#include "agent/outcome.h"
#include "agent/status.h"
#include "agent/store/etcd.h"
#include "agent/store/serve.h"
#include "agent/tls/tls.h"
#include "agent/workers/confinement.h"
#include "agent/workers/guard.h"
#include "agent/workers/output.h"
#include "base/sys/descriptors.h"
#include "base/sys/limits.h"
#include "base/sys/line.h"
#include "base/sys/printing.h"
#include "base/sys/priority.h"
#include "base/sys/tcp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NO_STORE = 69, NO_ROOM = 71, STACK_BYTES = 512 << 10 };

static int fail(const struct err *err, int code) {
    line_say(LINE_ERROR, "error", "%s", err->msg);
    return code;
}

static int serve(const struct options *o) {
    struct err err = {0};
    struct serve_config c = {.host = o->store_host,
                             .port = (uint16_t)o->store_port,
                             .quarantine = o->store_quarantine,
                             .token = o->rdzv.access.token,
                             .draw_token = o->rdzv.access.sealed,
                             .clients_certified = o->rdzv.tls.client_ca,
                             .memory_mb = (size_t)o->store_memory_mb,
                             .connections_max = (size_t)o->store_connections,
                             .names = o->store_names};
    if (o->rdzv.tls.cert) {
        c.tls = tls_new(&o->rdzv.tls, &err);
        if (!c.tls)
            return fail(&err, OPTIONS_USAGE);
    }
    priority_raise();
    return serve_run(&c, &err) < 0 ? fail(&err, 1) : 0;
}

/* Before anything starts: the store is opened when much has. Only where it may be served, as other
 * nodes have no key. */
static int check_tls(const struct options *o, struct err *err) {
    if (!o->rdzv.tls.cert || !tcp_host_is_ours(o->endpoint_host))
        return 0;
    struct tls *t = tls_new(&o->rdzv.tls, err);
    tls_free(t);
    return t ? 0 : err->code;
}

/* Where it stands among other processes it must ask for before. */
static int confine(struct err *err) {
    BUF_FINI struct buf open = {0};
    priority_raise();
    int code = confinement_begin(&open, err);
    for (char *rest = open.data, *line; rest && (line = strtok_r(rest, "\n", &rest));)
        line_say(LINE_WARNING, "sandbox", "%s", line);
    return code;
}

/* The guard comes first, before a loop or a library: it starts while the agent sets itself up. Only
 * a sandbox comes before, in which it is born. */
static int run_agent(const struct options *o, struct etcd *own) {
    struct err err = {0};
    struct worker_command command = {
        .words = o->command,
        .module = o->module,
        .no_python = o->no_python,
        .run_path = o->run_path,
        .sandbox = o->sandbox,
        .output = o->output,
    };
    if (o->sandbox && confine(&err) < 0)
        return fail(&err, 1);
    struct guard *guard = guard_new(&command, &err);
    if (!guard)
        return fail(&err, 1);
    guard_spare(guard, own ? etcd_keeper(own) : 0);
    priority_raise(); /* the guard exists already and keeps its ordinary one, as workers do */
    int code = agent_run(o, guard, own, &err);
    return err.code ? fail(&err, code) : code;
}

static int run_beside_etcd(const struct options *without) {
    struct options o = *without;
    struct err err = {0};
    char endpoint[64];
    struct etcd *own = etcd_start(o.backend == BACKEND_ETCD_LEGACY, &err);
    if (!own)
        return fail(&err, err.code == -EINVAL ? OPTIONS_USAGE : NO_STORE);
    o.endpoint_port = etcd_port(own);
    snprintf(endpoint, sizeof(endpoint), "%s:%d", o.endpoint_host, o.endpoint_port);
    o.endpoints = endpoint;
    line_say(LINE_INFO, "store", "started an etcd at %s for this job", endpoint);
    int code = run_agent(&o, own);
    etcd_free(own);
    return code;
}

static int run(const struct options *o) {
    struct err err = {0};
    for (const char *const *line = o->notices; *line; line++)
        line_say(LINE_INFO, "option", "%s", *line);
    if (output_check(o->output.log_dir, &err) < 0 || check_tls(o, &err) < 0)
        return fail(&err, OPTIONS_USAGE);
    return o->own_etcd ? run_beside_etcd(o) : run_agent(o, NULL);
}

static int run_on_hosts(const struct options *o) {
    struct err err = {0};
    struct fleet_spec s = {
        .hosts = o->hosts,
        .min = o->nodes_min,
        .argv = o->host_argv,
        .variable = o->host_token,
        .ssh = o->ssh,
        .plain = o->everywhere,
    };
    int code = fleet_run(&s, &err);
    return code < 0 ? fail(&err, 1) : code;
}

static int run_for_outcome(const struct options *o) {
    struct err err = {0};
    int code = outcome_run(o->outcome_dir, o->command, &err);
    return code < 0 ? fail(&err, code == -EINVAL ? OPTIONS_USAGE : 1) : code;
}

/* Read by man and by shells, as it is. */
static int print_page(const struct options *o) {
    BUF_FINI struct buf page = {0};
    if (o->verb == OPTIONS_MANUAL)
        options_put_manual(&page);
    else if (o->verb == OPTIONS_SCRIPT)
        options_put_script(&page, o->shell);
    else
        options_put_words(&page, o->command);
    return printing_put(stdout, buf_str(&page), page.len) ? 0 : 1;
}

static int dispatch(const struct options *o) {
    switch (o->verb) {
    case OPTIONS_HELP:
        options_print_help(stdout);
        return 0;
    case OPTIONS_VERSION:
        puts("rankrun " RANKQUAKE_VERSION);
        return 0;
    case OPTIONS_MANUAL:
    case OPTIONS_SCRIPT:
    case OPTIONS_WORDS:
        return print_page(o);
    case OPTIONS_STORE:
        return serve(o);
    case OPTIONS_STATUS:
        return status_run(o);
    case OPTIONS_OUTCOME:
        return run_for_outcome(o);
    case OPTIONS_HOSTS:
        return run_on_hosts(o);
    case OPTIONS_RUN:
        return run(o);
    }
    return OPTIONS_USAGE;
}

/* Nobody types it: what it is to do comes by standard input. */
static bool is_remote(int argc, char **argv) {
    bool json = argc == 3 && strcmp(argv[2], REMOTE_JSON) == 0;
    if ((argc != 2 && !json) || strcmp(argv[1], "remote") != 0)
        return false;
    line_as_json(json);
    return true;
}

int main(int argc, char **argv) {
    struct options o;
    ARENA_FINI struct arena arena = {0};
    struct err err = {0};
    descriptors_open_standard();
    printing_begin();
    if (guard_is_me(argv))
        return guard_main();
    if (etcd_keeper_is_me(argv))
        return etcd_keeper_main(argv);
    if (limits_want_stack(STACK_BYTES, &err) < 0)
        return fail(&err, NO_ROOM);
    if (is_remote(argc, argv))
        return remote_main();
    if (options_read(&o, argc, argv, &arena, &err) < 0)
        return fail(&err, OPTIONS_USAGE);
    line_as_json(o.log_json);
    return dispatch(&o);
}
