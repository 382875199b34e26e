/* list: an intrusive doubly linked list. A head is a node that points to itself when empty.
 * The owner of the containing struct frees it; the list owns nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *prev, *next;
};

#define list_entry(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))
#define list_each(it, head)            for (struct list *it = (head)->next; it != (head); it = it->next)
/* Safe against removal of the current node. */
#define list_each_safe(it, nx, head)                                                               \
    for (struct list *it = (head)->next, *nx = it->next; it != (head); it = nx, nx = it->next)

static inline void list_init(struct list *head) {
    head->prev = head->next = head;
}
static inline bool list_empty(const struct list *head) {
    return head->next == head;
}
static inline void list_append(struct list *head, struct list *node) {
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}
static inline void list_remove(struct list *node) {
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}
