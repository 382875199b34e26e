#include "base/sys/owned_table.h"

#include "base/buf.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <linux/if_arp.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef NFT_TABLE_F_OWNER
#define NFT_TABLE_F_OWNER 2
#endif

enum { ANSWER_MAX = 65536, SEND_MAX = 16 << 20, FIRST = -300, LAST = 300 };

#define COMMENT "rankquake "

static const struct {
    const char *name;
    unsigned hook;
    int priority;
    bool in;
} chains[OWNED_CHAINS_N] = {
    [OWNED_IN] = {"in", NF_INET_LOCAL_IN, FIRST, true},
    [OWNED_OUT] = {"out", NF_INET_LOCAL_OUT, FIRST, false},
    [OWNED_IN_BEHIND] = {"in-behind", NF_INET_LOCAL_IN, LAST, true},
    [OWNED_OUT_BEHIND] = {"out-behind", NF_INET_LOCAL_OUT, LAST, false},
};

/* ---- putting messages together ---- */

static void put_padded(struct buf *b, const void *data, size_t n) {
    static const char zeros[NLA_ALIGNTO];
    buf_put(b, data, n);
    buf_put(b, zeros, NLA_ALIGN(n) - n);
}

static void put(struct buf *b, int type, const void *data, size_t n) {
    struct nlattr a = {.nla_len = (uint16_t)(NLA_HDRLEN + n), .nla_type = (uint16_t)type};
    put_padded(b, &a, sizeof(a));
    put_padded(b, data, n);
}

static void put_string(struct buf *b, int type, const char *s) {
    put(b, type, s, strlen(s) + 1);
}

static void put_u32(struct buf *b, int type, uint32_t v) {
    v = htonl(v);
    put(b, type, &v, sizeof(v));
}

static size_t nest(struct buf *b, int type) {
    size_t at = b->len;
    put(b, type | NLA_F_NESTED, "", 0);
    return at;
}

static void nest_end(struct buf *b, size_t at) {
    uint16_t len = (uint16_t)(b->len - at);
    memcpy(b->data + at + offsetof(struct nlattr, nla_len), &len, sizeof(len));
}

static size_t message(struct buf *b, int type, int flags, int family, int resource) {
    size_t at = b->len;
    struct nlmsghdr h = {.nlmsg_type = (uint16_t)type,
                         .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags)};
    struct nfgenmsg g = {.nfgen_family = (uint8_t)family,
                         .version = NFNETLINK_V0,
                         .res_id = htons((uint16_t)resource)};
    put_padded(b, &h, sizeof(h));
    put_padded(b, &g, sizeof(g));
    return at;
}

static void message_end(struct buf *b, size_t at) {
    uint32_t len = (uint32_t)(b->len - at);
    memcpy(b->data + at + offsetof(struct nlmsghdr, nlmsg_len), &len, sizeof(len));
}

static int type_of(int message) {
    return NFNL_SUBSYS_NFTABLES << 8 | message;
}

static void put_batch(struct buf *b, int type) {
    message_end(b, message(b, type, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES));
}

/* ---- expressions of a rule ---- */

struct nft_expression {
    size_t outer, inner;
};

static struct nft_expression expression(struct buf *b, const char *name) {
    struct nft_expression e = {.outer = nest(b, NFTA_LIST_ELEM)};
    put_string(b, NFTA_EXPR_NAME, name);
    e.inner = nest(b, NFTA_EXPR_DATA);
    return e;
}

static void expression_end(struct buf *b, struct nft_expression e) {
    nest_end(b, e.inner);
    nest_end(b, e.outer);
}

static void load_meta(struct buf *b, uint32_t key) {
    struct nft_expression e = expression(b, "meta");
    put_u32(b, NFTA_META_DREG, NFT_REG_1);
    put_u32(b, NFTA_META_KEY, key);
    expression_end(b, e);
}

static void load_bytes(struct buf *b, uint32_t base, uint32_t offset, uint32_t len) {
    struct nft_expression e = expression(b, "payload");
    put_u32(b, NFTA_PAYLOAD_DREG, NFT_REG_1);
    put_u32(b, NFTA_PAYLOAD_BASE, base);
    put_u32(b, NFTA_PAYLOAD_OFFSET, offset);
    put_u32(b, NFTA_PAYLOAD_LEN, len);
    expression_end(b, e);
}

static void compare(struct buf *b, uint32_t how, const void *value, size_t n) {
    struct nft_expression e = expression(b, "cmp");
    put_u32(b, NFTA_CMP_SREG, NFT_REG_1);
    put_u32(b, NFTA_CMP_OP, how);
    size_t data = nest(b, NFTA_CMP_DATA);
    put(b, NFTA_DATA_VALUE, value, n);
    nest_end(b, data);
    expression_end(b, e);
}

static void is_byte(struct buf *b, uint32_t meta, uint8_t value) {
    load_meta(b, meta);
    compare(b, NFT_CMP_EQ, &value, sizeof(value));
}

static void put_counter(struct buf *b) {
    uint64_t none = 0;
    struct nft_expression e = expression(b, "counter");
    put(b, NFTA_COUNTER_BYTES, &none, sizeof(none));
    put(b, NFTA_COUNTER_PACKETS, &none, sizeof(none));
    expression_end(b, e);
}

static void put_verdict(struct buf *b, uint32_t verdict) {
    struct nft_expression e = expression(b, "immediate");
    put_u32(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    size_t data = nest(b, NFTA_IMMEDIATE_DATA), inner = nest(b, NFTA_DATA_VERDICT);
    put_u32(b, NFTA_VERDICT_CODE, verdict);
    nest_end(b, inner);
    nest_end(b, data);
    expression_end(b, e);
}

/* ---- rules ---- */

struct rule_in_work {
    size_t message, list;
};

static struct rule_in_work rule(struct buf *b, const char *table, enum owned_chain chain) {
    struct rule_in_work r = {.message = message(b, type_of(NFT_MSG_NEWRULE),
                                                NLM_F_CREATE | NLM_F_APPEND, NFPROTO_INET, 0)};
    put_string(b, NFTA_RULE_TABLE, table);
    put_string(b, NFTA_RULE_CHAIN, chains[chain].name);
    r.list = nest(b, NFTA_RULE_EXPRESSIONS);
    return r;
}

/* The comment that nft shows: a type, a length, and the text. */
static void rule_end(struct buf *b, struct rule_in_work r, uint32_t tag) {
    char comment[48];
    nest_end(b, r.list);
    if (tag) {
        int n = snprintf(comment + 2, sizeof(comment) - 2, COMMENT "%u", tag) + 1;
        comment[0] = 0;
        comment[1] = (char)n;
        put(b, NFTA_RULE_USERDATA, comment, (size_t)n + 2);
    }
    message_end(b, r.message);
}

static void match_address(struct buf *b, const char *address, bool in) {
    unsigned char bytes[16];
    bool six = inet_pton(AF_INET, address, bytes) != 1;
    if (six)
        inet_pton(AF_INET6, address, bytes);
    is_byte(b, NFT_META_NFPROTO, six ? NFPROTO_IPV6 : NFPROTO_IPV4);
    load_bytes(b, NFT_PAYLOAD_NETWORK_HEADER, six ? in ? 8 : 24 : in ? 12 : 16, six ? 16 : 4);
    compare(b, NFT_CMP_EQ, bytes, six ? 16 : 4);
}

static void match_port(struct buf *b, uint16_t port, bool source) {
    if (!port)
        return;
    port = htons(port);
    load_bytes(b, NFT_PAYLOAD_TRANSPORT_HEADER, source ? 0 : 2, 2);
    compare(b, NFT_CMP_EQ, &port, sizeof(port));
}

/* protocol 0: any. */
static void put_rule(struct buf *b, const char *table, const struct owned_rule *o,
                     uint8_t protocol) {
    bool in = chains[o->chain].in;
    struct rule_in_work r = rule(b, table, o->chain);
    if (o->address)
        match_address(b, o->address, in);
    if (protocol)
        is_byte(b, NFT_META_L4PROTO, protocol);
    match_port(b, in ? o->theirs : o->ours, true);
    match_port(b, in ? o->ours : o->theirs, false);
    if (o->tag)
        put_counter(b);
    if (o->what != OWNED_COUNT)
        put_verdict(b, o->what == OWNED_DROP ? NF_DROP : NF_ACCEPT);
    rule_end(b, r, o->tag);
}

static void put_rules(struct buf *b, const char *table, const struct owned_rule *v, size_t n) {
    for (size_t i = 0; i < n; i++) {
        bool ports = v[i].theirs || v[i].ours;
        put_rule(b, table, &v[i], ports ? IPPROTO_TCP : 0);
        if (ports)
            put_rule(b, table, &v[i], IPPROTO_UDP);
    }
}

static void pass_loopback(struct buf *b, const char *table, enum owned_chain chain) {
    uint16_t loopback = ARPHRD_LOOPBACK;
    struct rule_in_work r = rule(b, table, chain);
    load_meta(b, chains[chain].in ? NFT_META_IIFTYPE : NFT_META_OIFTYPE);
    compare(b, NFT_CMP_EQ, &loopback, sizeof(loopback));
    put_verdict(b, NF_ACCEPT);
    rule_end(b, r, 0);
}

static void pass_neighbours(struct buf *b, const char *table, enum owned_chain chain) {
    uint8_t first = ND_ROUTER_SOLICIT, last = ND_REDIRECT;
    struct rule_in_work r = rule(b, table, chain);
    is_byte(b, NFT_META_L4PROTO, IPPROTO_ICMPV6);
    load_bytes(b, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1);
    compare(b, NFT_CMP_GTE, &first, 1);
    compare(b, NFT_CMP_LTE, &last, 1);
    put_verdict(b, NF_ACCEPT);
    rule_end(b, r, 0);
}

static void put_chain(struct buf *b, const char *table, enum owned_chain c) {
    size_t m = message(b, type_of(NFT_MSG_NEWCHAIN), NLM_F_CREATE, NFPROTO_INET, 0);
    put_string(b, NFTA_CHAIN_TABLE, table);
    put_string(b, NFTA_CHAIN_NAME, chains[c].name);
    size_t hook = nest(b, NFTA_CHAIN_HOOK);
    put_u32(b, NFTA_HOOK_HOOKNUM, chains[c].hook);
    put_u32(b, NFTA_HOOK_PRIORITY, (uint32_t)chains[c].priority);
    nest_end(b, hook);
    put_u32(b, NFTA_CHAIN_POLICY, NF_ACCEPT);
    put_string(b, NFTA_CHAIN_TYPE, "filter");
    message_end(b, m);
}

static void put_table(struct buf *b, const char *name, bool made) {
    size_t m;
    if (made) {
        m = message(b, type_of(NFT_MSG_DELTABLE), 0, NFPROTO_INET, 0);
        put_string(b, NFTA_TABLE_NAME, name);
        message_end(b, m);
    }
    m = message(b, type_of(NFT_MSG_NEWTABLE), NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, NFPROTO_INET,
                0);
    put_string(b, NFTA_TABLE_NAME, name);
    put_u32(b, NFTA_TABLE_FLAGS, NFT_TABLE_F_OWNER);
    message_end(b, m);
    for (int c = 0; c < OWNED_CHAINS_N; c++) {
        put_chain(b, name, (enum owned_chain)c);
        pass_loopback(b, name, (enum owned_chain)c);
        pass_neighbours(b, name, (enum owned_chain)c);
    }
}

/* ---- the kernel ---- */

typedef void answer_fn(void *arg, const struct nlmsghdr *h);

/* One datagram. 1: there may be more; 0: that was the last; a -errno. */
static int take_answer(int nl, int flags, answer_fn *fn, void *arg) {
    static union {
        struct nlmsghdr align;
        char bytes[ANSWER_MAX];
    } in;
    ssize_t n = recv(nl, &in, sizeof(in), flags);
    if (n < 0)
        return errno == EINTR ? 1 : -errno;
    size_t left = (size_t)n;
    for (struct nlmsghdr *h = &in.align; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
        if (h->nlmsg_type == NLMSG_DONE)
            return 0;
        if (h->nlmsg_type == NLMSG_ERROR && ((const struct nlmsgerr *)NLMSG_DATA(h))->error)
            return ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
        if (fn)
            fn(arg, h);
    }
    return 1;
}

static void note_answered(void *arg, const struct nlmsghdr *h) {
    *(bool *)arg = true;
}

/* The kernel has done it, or refused it, when sendto returns: all answers are there. */
static int do_batch(int nl, const struct buf *b) {
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    int r = 1, wrong = 0;
    bool answered = false;
    if (sendto(nl, b->data, b->len, 0, (void *)&kernel, sizeof(kernel)) < 0)
        return -errno;
    while ((r = take_answer(nl, MSG_DONTWAIT, note_answered, &answered)) != -EAGAIN)
        if (r < 0 && !wrong)
            wrong = r;
    return wrong ? wrong : answered ? 0 : -EPROTO;
}

static int open_socket(void) {
    struct sockaddr_nl own = {.nl_family = AF_NETLINK};
    FILE_CLOSE int nl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
    int most = SEND_MAX;
    if (nl < 0 || bind(nl, (void *)&own, sizeof(own)) != 0)
        return -errno;
    setsockopt(nl, SOL_SOCKET, SO_SNDBUFFORCE, &most, sizeof(most));
    return file_keep(&nl);
}

static int refused(int code, struct err *err) {
    if (code == -EPERM)
        return err_say(err, -ENOTSUP, "packets cannot be filtered here without CAP_NET_ADMIN");
    if (code == -EPROTONOSUPPORT || code == -ENOENT || code == -EAFNOSUPPORT)
        return err_say(err, -ENOTSUP, "this kernel has no packet filter: modprobe nf_tables");
    if (code == -EINVAL || code == -EOPNOTSUPP)
        return err_say(err, -ENOTSUP,
                       "this kernel's nftables know no tables with an owner, which "
                       "go away with it (Linux 5.12)");
    return err_set(err, code, "make a packet filter");
}

int owned_table_open(struct owned_table *ret, const char *name, struct err *err) {
    int nl = open_socket();
    if (nl < 0)
        return refused(nl, err);
    *ret = (struct owned_table){.nl = nl};
    str_copy(ret->name, sizeof(ret->name), name);
    return 0;
}

int owned_table_set(struct owned_table *t, const struct owned_rule *v, size_t n, struct err *err) {
    BUF_FINI struct buf b = {0};
    put_batch(&b, NFNL_MSG_BATCH_BEGIN);
    put_table(&b, t->name, t->made);
    put_rules(&b, t->name, v, n);
    put_batch(&b, NFNL_MSG_BATCH_END);
    int r = do_batch(t->nl, &b);
    if (r)
        return refused(r, err);
    t->made = true;
    return 0;
}

void owned_table_close(struct owned_table *t) {
    file_close(&t->nl);
    t->made = false;
}

/* ---- counters ---- */

struct rule_counting {
    void (*fn)(void *arg, uint32_t tag, uint64_t packets);
    void *arg;
};

static const struct nlattr *find(const void *data, size_t len, int type) {
    const char *at = data, *end = at + len;
    while (end - at >= NLA_HDRLEN) {
        const struct nlattr *a = (const void *)at;
        if (a->nla_len < NLA_HDRLEN || a->nla_len > end - at)
            return NULL;
        if ((a->nla_type & NLA_TYPE_MASK) == type)
            return a;
        at += NLA_ALIGN(a->nla_len);
        if (at > end)
            return NULL;
    }
    return NULL;
}

static const void *inside(const struct nlattr *a, size_t *ret_n) {
    *ret_n = a ? (size_t)(a->nla_len - NLA_HDRLEN) : 0;
    return a ? (const char *)a + NLA_HDRLEN : NULL;
}

static bool is_counter(const void *expression, size_t len) {
    size_t n;
    const char *name = inside(find(expression, len, NFTA_EXPR_NAME), &n);
    return name && n == sizeof("counter") && memcmp(name, "counter", n) == 0;
}

static uint64_t packets_of(const void *list, size_t len) {
    const char *at = list, *end = at + len;
    size_t n, m;
    uint64_t packets = 0;
    const struct nlattr *e;
    while (at < end && (e = find(at, (size_t)(end - at), NFTA_LIST_ELEM))) {
        const void *expression = inside(e, &n);
        if (is_counter(expression, n)) {
            const void *data = inside(find(expression, n, NFTA_EXPR_DATA), &m);
            const void *count = inside(find(data, m, NFTA_COUNTER_PACKETS), &m);
            if (count && m == sizeof(packets))
                memcpy(&packets, count, sizeof(packets));
            return be64toh(packets);
        }
        at = (const char *)e + NLA_ALIGN(e->nla_len);
    }
    return 0;
}

static void take_rule(void *arg, const struct nlmsghdr *h) {
    const struct rule_counting *c = arg;
    size_t body = NLMSG_LENGTH(sizeof(struct nfgenmsg)), n, m;
    if (h->nlmsg_type != type_of(NFT_MSG_NEWRULE) || h->nlmsg_len < body)
        return;
    const char *at = (const char *)h + body;
    const char *comment = inside(find(at, h->nlmsg_len - body, NFTA_RULE_USERDATA), &n);
    const void *list = inside(find(at, h->nlmsg_len - body, NFTA_RULE_EXPRESSIONS), &m);
    if (list && n > 2 + strlen(COMMENT) && !comment[n - 1] && str_starts(comment + 2, COMMENT))
        c->fn(c->arg, (uint32_t)strtoul(comment + 2 + strlen(COMMENT), NULL, 10),
              packets_of(list, m));
}

int owned_table_count(const struct owned_table *t,
                      void (*fn)(void *arg, uint32_t tag, uint64_t packets), void *arg,
                      struct err *err) {
    BUF_FINI struct buf b = {0};
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    struct rule_counting c = {fn, arg};
    int r;
    if (!t->made)
        return 0;
    size_t m = message(&b, type_of(NFT_MSG_GETRULE), NLM_F_DUMP, NFPROTO_INET, 0);
    put_string(&b, NFTA_RULE_TABLE, t->name);
    message_end(&b, m);
    if (sendto(t->nl, b.data, b.len, 0, (void *)&kernel, sizeof(kernel)) < 0)
        return err_set(err, -errno, "ask for the counters of the packet filter");
    while ((r = take_answer(t->nl, 0, take_rule, &c)) == 1)
        ;
    return r ? err_set(err, r, "read the counters of the packet filter") : 0;
}

/* ---- the trial ---- */

static int ask_table(int nl, int type, const char *name) {
    BUF_FINI struct buf b = {0};
    bool batch = type == NFT_MSG_DELTABLE;
    if (batch)
        put_batch(&b, NFNL_MSG_BATCH_BEGIN);
    size_t m = message(&b, type_of(type), NLM_F_ACK, NFPROTO_INET, 0);
    put_string(&b, NFTA_TABLE_NAME, name);
    message_end(&b, m);
    if (batch)
        put_batch(&b, NFNL_MSG_BATCH_END);
    return do_batch(nl, &b);
}

int owned_table_check(struct err *err) {
    struct owned_table t = OWNED_TABLE_NONE;
    char name[32];
    FILE_CLOSE int other = open_socket();
    snprintf(name, sizeof(name), "rankquake-try-%d", (int)getpid());
    int r = other < 0 ? refused(other, err) : owned_table_open(&t, name, err);
    r = r ? r : owned_table_set(&t, NULL, 0, err);
    if (r)
        return owned_table_close(&t), -ENOTSUP;
    bool guarded = ask_table(other, NFT_MSG_DELTABLE, name) == -EPERM;
    owned_table_close(&t);
    bool gone = ask_table(other, NFT_MSG_GETTABLE, name) == -ENOENT;
    if (!guarded || !gone)
        return err_say(err, -ENOTSUP, "this kernel does not %s a packet filter with its owner",
                       guarded ? "take away" : "keep");
    return 0;
}
