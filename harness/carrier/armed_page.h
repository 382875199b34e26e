/* armed_page: the page by which a job knows which of its events wait for an answer
 * (struct rankquake_page): written by who has made it, and by nobody who is given it. */
#pragma once

#include "base/err.h"
#include "scenarios/jobs/rankquake.h"

struct armed_page {
    struct rankquake_page *at; /* NULL: none */
    int fd;                    /* to be given to clients: they can read it */
};
#define ARMED_PAGE_NONE ((struct armed_page){NULL, -1})

int armed_page_make(struct armed_page *ret, struct err *err);
/* Bits of enum rankquake_kind, and from which step on steps count. */
void armed_page_set(struct armed_page *p, uint32_t kinds, uint64_t next_step);
void armed_page_end(struct armed_page *p);
