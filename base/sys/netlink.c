#include "base/sys/netlink.h"

#include "base/mem.h"
#include "base/sys/file.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST_MAX = 1024, ANSWER_MAX = 32768 };

struct netlink_request {
    union {
        struct nlmsghdr header;
        char bytes[REQUEST_MAX];
    };
};

static int netlink_open(int protocol, struct err *err) {
    int one = 1;
    int nl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (nl < 0)
        return err_set(err, -errno, "open a netlink socket");
    setsockopt(nl, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
    return nl;
}

int netlink_open_route(struct err *err) {
    return netlink_open(NETLINK_ROUTE, err);
}

int netlink_open_diag(struct err *err) {
    return netlink_open(NETLINK_SOCK_DIAG, err);
}

/* ---- putting a request together ---- */

static void *request_begin(struct netlink_request *r, int type, int flags, size_t body) {
    memset(r, 0, sizeof(*r));
    r->header.nlmsg_type = (uint16_t)type;
    r->header.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
    r->header.nlmsg_len = NLMSG_LENGTH(body);
    return NLMSG_DATA(&r->header);
}

static struct rtattr *put(struct netlink_request *r, int type, const void *data, size_t len) {
    size_t at = NLMSG_ALIGN(r->header.nlmsg_len);
    assert(at + RTA_SPACE(len) <= sizeof(r->bytes));
    struct rtattr *a = (void *)(r->bytes + at);
    a->rta_type = (uint16_t)type;
    a->rta_len = (uint16_t)RTA_LENGTH(len);
    if (len)
        memcpy(RTA_DATA(a), data, len);
    r->header.nlmsg_len = (uint32_t)(at + RTA_SPACE(len));
    return a;
}

static void put_string(struct netlink_request *r, int type, const char *s) {
    put(r, type, s, strlen(s) + 1);
}

/* An attribute that holds those put between nest and nest_end. */
static struct rtattr *nest(struct netlink_request *r, int type) {
    return put(r, type, NULL, 0);
}

static void nest_end(struct netlink_request *r, struct rtattr *a) {
    a->rta_len = (uint16_t)(r->bytes + r->header.nlmsg_len - (char *)a);
}

/* ---- sending it ---- */

/* Called for each message of an answer. */
typedef void answer_fn(void *arg, const struct nlmsghdr *h);

/* Reads one datagram; returns 1 when the answer is complete, 0 when more follows, or a -errno. */
static int take_answer(int nl, answer_fn *fn, void *arg) {
    static _Thread_local union {
        struct nlmsghdr align;
        char bytes[ANSWER_MAX];
    } in;
    ssize_t n;
    do
        n = recv(nl, &in, sizeof(in), 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    size_t left = (size_t)n;
    for (struct nlmsghdr *h = &in.align; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
        if (h->nlmsg_type == NLMSG_DONE)
            return 1;
        if (h->nlmsg_type == NLMSG_ERROR) {
            int code = ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
            return code ? code : 1;
        }
        if (fn)
            fn(arg, h);
    }
    return 0;
}

static int transact(int nl, struct netlink_request *r, answer_fn *fn, void *arg) {
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    if ((r->header.nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP) /* its bits mean other things too */
        r->header.nlmsg_flags |= NLM_F_ACK;
    if (sendto(nl, r, r->header.nlmsg_len, 0, (void *)&kernel, sizeof(kernel)) < 0)
        return -errno;
    int done;
    while ((done = take_answer(nl, fn, arg)) == 0)
        ;
    return done < 0 ? done : 0;
}

/* ---- network cards ---- */

static void put_peer(struct netlink_request *r, const struct netlink_veth *v) {
    struct ifinfomsg info = {.ifi_family = AF_UNSPEC};
    struct rtattr *peer = nest(r, VETH_INFO_PEER);
    size_t at = NLMSG_ALIGN(r->header.nlmsg_len);
    memcpy(r->bytes + at, &info, sizeof(info));
    r->header.nlmsg_len = (uint32_t)(at + NLMSG_ALIGN(sizeof(info)));
    put_string(r, IFLA_IFNAME, v->peer_name);
    if (v->peer_mac)
        put(r, IFLA_ADDRESS, v->peer_mac, 6);
    if (v->peer_netns >= 0)
        put(r, IFLA_NET_NS_FD, &v->peer_netns, sizeof(v->peer_netns));
    nest_end(r, peer);
}

void netlink_refuse_ipv6(void) {
    file_write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1", 1, NULL);
}

int netlink_add_veth(int nl, const struct netlink_veth *v, int *ret_ifindex, struct err *err) {
    struct netlink_request r;
    struct ifinfomsg *info =
        request_begin(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof(*info));
    info->ifi_family = AF_UNSPEC;
    put_string(&r, IFLA_IFNAME, v->name);
    struct rtattr *link = nest(&r, IFLA_LINKINFO);
    put_string(&r, IFLA_INFO_KIND, "veth");
    struct rtattr *data = nest(&r, IFLA_INFO_DATA);
    put_peer(&r, v);
    nest_end(&r, data);
    nest_end(&r, link);
    int code = transact(nl, &r, NULL, NULL);
    if (code == -EOPNOTSUPP)
        return err_say(err, code, "this kernel has no veth network cards: modprobe veth");
    if (code)
        return err_set(err, code, "make the network card %s", v->name);
    return netlink_link_index(nl, v->name, ret_ifindex, err);
}

static void take_index(void *arg, const struct nlmsghdr *h) {
    if (h->nlmsg_type == RTM_NEWLINK)
        *(int *)arg = ((const struct ifinfomsg *)NLMSG_DATA(h))->ifi_index;
}

int netlink_link_index(int nl, const char *name, int *ret_ifindex, struct err *err) {
    struct netlink_request r;
    int ifindex = 0;
    struct ifinfomsg *info = request_begin(&r, RTM_GETLINK, 0, sizeof(*info));
    info->ifi_family = AF_UNSPEC;
    put_string(&r, IFLA_IFNAME, name);
    int code = transact(nl, &r, take_index, &ifindex);
    if (code || ifindex <= 0)
        return err_set(err, code ? code : -ENODEV, "find the network card %s", name);
    *ret_ifindex = ifindex;
    return 0;
}

static int change_link(int nl, int type, int ifindex, unsigned flags) {
    struct netlink_request r;
    struct ifinfomsg *info = request_begin(&r, type, 0, sizeof(*info));
    info->ifi_family = AF_UNSPEC;
    info->ifi_index = ifindex;
    info->ifi_flags = info->ifi_change = flags;
    return transact(nl, &r, NULL, NULL);
}

int netlink_link_up(int nl, int ifindex, struct err *err) {
    int code = change_link(nl, RTM_NEWLINK, ifindex, IFF_UP);
    return code ? err_set(err, code, "switch on network card %d", ifindex) : 0;
}

int netlink_link_delete(int nl, int ifindex, struct err *err) {
    int code = change_link(nl, RTM_DELLINK, ifindex, 0);
    return code ? err_set(err, code, "remove network card %d", ifindex) : 0;
}

int netlink_add_address(int nl, int ifindex, const char *addr, int prefix, struct err *err) {
    struct netlink_request r;
    struct in_addr in;
    if (inet_pton(AF_INET, addr, &in) != 1)
        return err_set(err, -EINVAL, "the address %s", addr);
    struct ifaddrmsg *info =
        request_begin(&r, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, sizeof(*info));
    info->ifa_family = AF_INET;
    info->ifa_prefixlen = (uint8_t)prefix;
    info->ifa_index = (uint32_t)ifindex;
    put(&r, IFA_LOCAL, &in, sizeof(in));
    put(&r, IFA_ADDRESS, &in, sizeof(in));
    int code = transact(nl, &r, NULL, NULL);
    return code ? err_set(err, code, "give network card %d the address %s", ifindex, addr) : 0;
}

/* ---- sockets ---- */

enum { DESTROYED_AT_ONCE = 512 };

struct netlink_found {
    struct inet_diag_sockid ids[DESTROYED_AT_ONCE];
    int n;
    bool more;
};

static void take_socket(void *arg, const struct nlmsghdr *h) {
    struct netlink_found *f = arg;
    if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY)
        return;
    if (f->n == DESTROYED_AT_ONCE) {
        f->more = true;
        return;
    }
    f->ids[f->n++] = ((const struct inet_diag_msg *)NLMSG_DATA(h))->id;
}

/* SOCK_DESTROY is not in the headers of every distribution that has it in the kernel. */
enum { DIAG_DESTROY = 21, ALL_STATES = ~0 };

static int destroy_one(int diag, int family, const struct inet_diag_sockid *id) {
    struct netlink_request r;
    struct inet_diag_req_v2 *q = request_begin(&r, DIAG_DESTROY, 0, sizeof(*q));
    q->sdiag_family = (uint8_t)family;
    q->sdiag_protocol = IPPROTO_TCP;
    q->idiag_states = (uint32_t)ALL_STATES;
    q->id = *id;
    return transact(diag, &r, NULL, NULL);
}

/* One pass over the sockets of a family. *ret_more: there are more than fit in one pass. */
static int destroy_family(int diag, int family, bool *ret_more) {
    static struct netlink_found f;
    struct netlink_request r;
    f.n = 0;
    f.more = false;
    struct inet_diag_req_v2 *q = request_begin(&r, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, sizeof(*q));
    q->sdiag_family = (uint8_t)family;
    q->sdiag_protocol = IPPROTO_TCP;
    q->idiag_states = (uint32_t)ALL_STATES;
    int code = transact(diag, &r, take_socket, &f);
    int destroyed = 0;
    for (int i = 0; i < f.n && code == 0; i++) {
        code = destroy_one(diag, family, &f.ids[i]);
        if (code == 0)
            destroyed++;
        else if (code == -ENOENT) /* gone meanwhile, as we wish */
            code = 0;
    }
    *ret_more = f.more && destroyed > 0;
    return code ? code : destroyed;
}

int netlink_destroy_sockets(int diag, struct err *err) {
    int families[] = {AF_INET, AF_INET6}, all = 0;
    for (int i = 0; i < 2; i++) {
        for (bool more = true; more;) {
            int n = destroy_family(diag, families[i], &more);
            if (n == -EAFNOSUPPORT || n == -ENOENT) /* a kernel without IPv6 */
                break;
            if (n == -EOPNOTSUPP)
                return err_say(err, n,
                               "this kernel cannot destroy sockets (CONFIG_INET_DIAG_DESTROY)");
            if (n < 0)
                return err_set(err, n, "destroy the sockets of a node");
            all += n;
        }
    }
    return all;
}

/* ---- connections ---- */

static_assert(sizeof(((struct netlink_connection *)0)->id) == sizeof(struct inet_diag_sockid),
              "the kernel's name of a socket has grown");

struct netlink_connections {
    struct netlink_connection *v;
    size_t n;
};

/* An address of IPv4, written as one of IPv6 too; 0: it is none. */
static uint32_t ipv4_of(int family, const __be32 address[4]) {
    bool mapped = !address[0] && !address[1] && address[2] == htonl(0xffff);
    return family == AF_INET ? address[0] : mapped ? address[3] : 0;
}

static void take_connection(void *arg, const struct nlmsghdr *h) {
    struct netlink_connections *all = arg;
    const struct inet_diag_msg *m = NLMSG_DATA(h);
    if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY || !ipv4_of(m->idiag_family, m->id.idiag_dst))
        return;
    struct netlink_connection c = {
        .remote = ipv4_of(m->idiag_family, m->id.idiag_dst),
        .local_port = ntohs(m->id.idiag_sport),
        .remote_port = ntohs(m->id.idiag_dport),
        .cookie = (uint64_t)m->id.idiag_cookie[1] << 32 | m->id.idiag_cookie[0],
        .by_ipv6 = m->idiag_family == AF_INET6,
    };
    memcpy(c.id, &m->id, sizeof(c.id));
    mem_push(all->v, all->n) = c;
}

int netlink_connections(int diag, struct netlink_connection **ret, size_t *ret_n, struct err *err) {
    static const int families[] = {AF_INET, AF_INET6};
    struct netlink_connections all = {0};
    for (int i = 0; i < 2; i++) {
        struct netlink_request r;
        struct inet_diag_req_v2 *q = request_begin(&r, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, sizeof(*q));
        q->sdiag_family = (uint8_t)families[i];
        q->sdiag_protocol = IPPROTO_TCP;
        q->idiag_states = 1 << TCP_ESTABLISHED;
        int code = transact(diag, &r, take_connection, &all);
        if (code && code != -EAFNOSUPPORT && code != -ENOENT) {
            free(all.v);
            return err_set(err, code, "list the connections of a node");
        }
    }
    *ret = all.v;
    *ret_n = all.n;
    return 0;
}

int netlink_destroy_connection(int diag, const struct netlink_connection *c, struct err *err) {
    struct inet_diag_sockid id;
    memcpy(&id, c->id, sizeof(id));
    int code = destroy_one(diag, c->by_ipv6 ? AF_INET6 : AF_INET, &id);
    if (code == -EOPNOTSUPP)
        return err_say(err, code, "this kernel cannot destroy sockets (CONFIG_INET_DIAG_DESTROY)");
    return code ? err_set(err, code, "destroy a connection of a node") : 0;
}
