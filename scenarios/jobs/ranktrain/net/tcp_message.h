/* tcp_message: one piece of a collective on its way over a connection: 16 bytes, its number and a
 * checksum, and the bytes themselves. TCP's own checksum is 16 bits, and right for what a card has
 * spoilt before it was made. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tcp_message {
    struct {
        uint64_t number, checksum;
    } head;
    char *body; /* the caller's */
    size_t bytes, done;
};

/* One that goes out, with its checksum, or one that is to come in. */
void tcp_message_out(struct tcp_message *ret, uint64_t number, void *body, size_t bytes);
void tcp_message_in(struct tcp_message *ret, void *body, size_t bytes);

bool tcp_message_is_whole(const struct tcp_message *m);

/* What has come is what was sent. */
bool tcp_message_is_right(const struct tcp_message *m);

/* What goes without waiting. Returns 1: some has gone, 0: nothing now, or -ECONNRESET or another
 * error. */
int tcp_message_send(struct tcp_message *m, int fd);
int tcp_message_receive(struct tcp_message *m, int fd);
