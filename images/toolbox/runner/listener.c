#define _GNU_SOURCE
#include "listener.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "connection.h"
#include "runner.h"

/* The kernel has a limit of its own, which is usually 4096. */
#define BACKLOG 4096
#define ACCEPT_AGAIN_MS 100

static struct endpoint *take_waiting(struct endpoint *listener) {
    struct endpoint *c = listener->first_waiting;
    listener->first_waiting = c->next_waiting;
    if (!listener->first_waiting) listener->last_waiting = NULL;
    c->listener = c->next_waiting = NULL;
    return c;
}

static void watch_listener(struct runner *r, struct endpoint *listener) {
    watch(r, &listener->source, listener->first_waiting && !listener->accept_again_ms ? EPOLLIN : 0);
}

/* There is no descriptor left. epoll would report the connection that waits again at once, over and over. */
static void pause_accepting(struct runner *r, struct endpoint *listener) {
    listener->accept_again_ms = now_ms() + ACCEPT_AGAIN_MS;
    wake_at(r, listener->accept_again_ms);
}

static void on_connections(struct runner *r, struct source *s, uint32_t events) {
    (void)events;
    struct endpoint *listener = s->owner;
    while (listener->first_waiting) {
        if (!connection_fits(r)) {
            pause_accepting(r, listener);
            break;
        }
        union address from = {0};
        socklen_t size = sizeof from;
        int fd = accept4(s->fd, &from.any, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (fd < 0) {
            if (errno != EAGAIN) pause_accepting(r, listener);
            break;
        }
        if (may_use_fd(r, fd)) {
            connection_begin(r, take_waiting(listener), fd, &from);
            continue;
        }
        close(fd);
        pause_accepting(r, listener);
        break;
    }
    watch_listener(r, listener);
}

void listener_open(struct runner *r, uint32_t id, const union address *at) {
    union address bound = *at;
    uint8_t payload[ADDRESS_BYTES];
    int fd = endpoint_bind(r, SOCK_STREAM, &bound);
    int error = fd < 0 || listen(fd, BACKLOG) != 0 ? errno : 0;
    struct endpoint *listener = error ? NULL : endpoint_open(r, id, ENDPOINT_LISTENER);
    if (!listener) {
        if (fd >= 0) close(fd);
        endpoint_refuse(r, id, error ? error : ENOMEM);
        return;
    }
    listener->source.fd = fd;
    listener->source.on_event = on_connections;
    address_write(&bound, payload);
    link_send(&r->link, FRAME_BOUND, id, payload, sizeof payload);
}

bool listener_add(struct runner *r, struct endpoint *listener, uint32_t id) {
    struct endpoint *c = endpoint_open(r, id, ENDPOINT_CONNECTION);
    if (!c) return false;
    c->phase = ENDPOINT_WAITING;
    c->listener = listener;
    if (listener->last_waiting) listener->last_waiting->next_waiting = c;
    else listener->first_waiting = c;
    listener->last_waiting = c;
    watch_listener(r, listener);
    return true;
}

void listener_forget(struct endpoint *waiting) {
    struct endpoint *listener = waiting->listener, *before = NULL;
    for (struct endpoint *c = listener->first_waiting; c != waiting; c = c->next_waiting) before = c;
    if (before) before->next_waiting = waiting->next_waiting;
    else listener->first_waiting = waiting->next_waiting;
    if (listener->last_waiting == waiting) listener->last_waiting = before;
    waiting->listener = waiting->next_waiting = NULL;
}

void listener_close(struct runner *r, struct endpoint *listener) {
    while (listener->first_waiting) endpoint_end(r, take_waiting(listener), ECANCELED);
    endpoint_end(r, listener, ECANCELED);
}

void listener_tick(struct runner *r, struct endpoint *listener, uint64_t now) {
    if (!listener->accept_again_ms) return;
    if (now < listener->accept_again_ms) {
        wake_at(r, listener->accept_again_ms);
        return;
    }
    listener->accept_again_ms = 0;
    watch_listener(r, listener);
}
