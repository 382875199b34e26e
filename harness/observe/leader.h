/* leader: who decides for a job of rankrun, and which member of an etcd leads it, as the store
 * itself says. The words are etcd's JSON gateway's (etcd v3 API: kv/range, maintenance/status,
 * cluster/member/list), which rankrun's own store speaks too; a job's keys are
 *
 *     /rankrun/<run id>/cur             {"inc": its incarnation}
 *     /rankrun/<run id>/<inc>/lead      {"uid": the session of the agent that coordinates}
 *     /rankrun/<run id>/<inc>/m/<uid>   {"addr": what others reach that agent by}
 *     .../s/<uid>, .../gone/<uid>       it lives as far as the store knows; it does not */
#pragma once

#include "base/err.h"
#include "base/json.h"

#include <stdint.h>

struct leader {
    char name[256]; /* of a job the address of the agent; of an etcd the member's name */
    int64_t term;   /* the revision at which it took the lead; the term of raft */
};

/* Out of the answers. 0; -ENOENT: nobody leads now; -EPROTO: that is no such answer. err is a
 * sentence. list: of all members; status: of whoever was asked, which NULL is no answer. */
int leader_of_job(const struct json *range, const char *run_id, struct leader *ret,
                  struct err *err);
int leader_of_members(const struct json *status, const struct json *list, struct leader *ret,
                      struct err *err);

/* How many keys a range holds; -EPROTO: that is no range. */
int leader_keys_of(const struct json *range, int64_t *ret, struct err *err);

/* Asks the store there. Blocking, for a process that does nothing else (rankquake inquire); as
 * above, or as gateway_ask when there is no answer. */
int leader_ask_job(const char *addr, uint16_t port, const char *run_id, struct leader *ret,
                   struct err *err);
/* How many keys a job has there: of all its lives; 0 or the error of asking. */
int leader_ask_keys(const char *addr, uint16_t port, const char *run_id, int64_t *ret,
                    struct err *err);
int leader_ask_member(const char *addr, uint16_t port, struct leader *ret, struct err *err);
