#define _GNU_SOURCE
#include "endpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "runner.h"

/* The most credit that a host may leave unused, as for the output of commands. */
#define ENDPOINT_CREDIT_MAX (64 << 20)
/* The kernel's buffer for each direction of a socket: a thousand sockets that nobody reads must not take gigabytes. */
#define KERNEL_BYTES (256 << 10)

struct endpoint *endpoint_find(const struct runner *r, uint32_t id) {
    struct endpoint *e = r->endpoints[id % CHANNEL_BUCKETS];
    while (e && e->id != id) e = e->next;
    return e;
}

struct endpoint *endpoint_open(struct runner *r, uint32_t id, enum endpoint_kind kind) {
    struct endpoint *e = calloc(1, sizeof *e);
    if (!e) return NULL;
    e->id = id;
    e->kind = kind;
    e->phase = ENDPOINT_OPEN;
    e->credit = INITIAL_CREDIT;
    e->source = (struct source){.owner = e, .fd = -1};
    e->next = r->endpoints[id % CHANNEL_BUCKETS];
    r->endpoints[id % CHANNEL_BUCKETS] = e;
    return e;
}

static int close_failed(int fd) {
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int endpoint_socket(struct runner *r, int family, int type) {
    int bytes = KERNEL_BYTES;
    int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    if (!may_use_fd(r, fd)) return close_failed(fd);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    return fd;
}

int endpoint_bind(struct runner *r, int type, union address *at) {
    int on = 1;
    socklen_t size = address_size(at);
    int fd = endpoint_socket(r, at->any.sa_family, type);
    if (fd < 0) return -1;
    /* Connections that have just been closed do not keep a port from being listened on. Another listener does. */
    if (type == SOCK_STREAM) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, &at->any, size) == 0 && getsockname(fd, &at->any, &size) == 0) return fd;
    return close_failed(fd);
}

void endpoint_refuse(struct runner *r, uint32_t id, int error) {
    uint8_t payload[EXIT_HEAD_BYTES] = {EXIT_SOCKET};
    put32(payload + 4, (uint32_t)error);
    link_send(&r->link, FRAME_EXIT, id, payload, sizeof payload);
}

void endpoint_end(struct runner *r, struct endpoint *e, int error) {
    struct endpoint **at = &r->endpoints[e->id % CHANNEL_BUCKETS];
    while (*at != e) at = &(*at)->next;
    *at = e->next;
    if (e->kind == ENDPOINT_CONNECTION && is_open(&e->source)) r->open_connections--;
    close_source(r, &e->source);
    buffer_free(&e->input);
    endpoint_refuse(r, e->id, error);
    e->phase = ENDPOINT_RETIRED;
    e->next = r->retired_endpoints;
    r->retired_endpoints = e;
}

bool endpoint_take_credit(struct endpoint *e, uint32_t bytes) {
    e->credit += bytes;
    return e->credit <= ENDPOINT_CREDIT_MAX;
}

void endpoints_free_retired(struct runner *r) {
    while (r->retired_endpoints) {
        struct endpoint *e = r->retired_endpoints;
        r->retired_endpoints = e->next;
        free(e);
    }
}

void for_each_endpoint(struct runner *r, void (*act)(struct runner *, struct endpoint *)) {
    for (int i = 0; i < CHANNEL_BUCKETS; i++)
        for (struct endpoint *e = r->endpoints[i], *next; e; e = next) {
            next = e->next; /* it may be retired meanwhile */
            act(r, e);
        }
}
