#define _GNU_SOURCE
#include "connection.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runner.h"

#define INPUT_GRANT_STEP (INITIAL_CREDIT / 2)

bool connection_fits(const struct runner *r) { return r->open_connections < r->fd_limit / 2; }

static bool may_receive(const struct runner *r, const struct endpoint *c) {
    return c->phase == ENDPOINT_OPEN && !c->output_ended && c->credit > 0 && !link_is_full(&r->link);
}

/*
 * A connection for which nothing can be done waits for EPOLLERR, with which the kernel also reports a hang-up: the host is to learn
 * of a reset although it sends nothing. Once that has come, epoll would report it over and over.
 */
static void watch_connection(struct runner *r, struct endpoint *c) {
    if (link_is_full(&r->link)) r->network_waits = true;
    uint32_t events = may_receive(r, c) ? EPOLLIN : 0;
    if (c->phase == ENDPOINT_CONNECTING || buffer_length(&c->input) > 0) events |= EPOLLOUT;
    if (events == 0 && !c->has_hung_up) events = EPOLLERR;
    watch(r, &c->source, events);
}

static void note_error(struct endpoint *c, int error) {
    if (!c->error) c->error = error;
}

/* ---- towards the program ----------------------------------------------------------------------------------------- */

static void grant_input(struct runner *r, struct endpoint *c, size_t bytes) {
    c->taken += (uint32_t)bytes;
    if (c->taken < INPUT_GRANT_STEP) return;
    uint8_t payload[4];
    put32(payload, c->taken);
    link_send(&r->link, FRAME_CREDIT_FROM_RUNNER, c->id, payload, sizeof payload);
    c->taken = 0;
}

/* No program reads the rest any more. Bytes that the program has sent before may still be there to be read. */
static void give_up_writing(struct endpoint *c, int error) {
    note_error(c, error);
    c->is_shut = true;
    buffer_free(&c->input);
}

/* Sends as much as the socket takes now, and returns how much that was. */
static size_t send_some(struct runner *r, struct endpoint *c, const uint8_t *data, size_t length) {
    size_t sent = 0;
    while (sent < length) {
        ssize_t n = send(c->source.fd, data + sent, length - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        if (n < 0) {
            give_up_writing(c, errno);
            return length;
        }
        sent += (size_t)n;
    }
    grant_input(r, c, sent);
    return sent;
}

static void send_kept(struct runner *r, struct endpoint *c) {
    if (c->phase != ENDPOINT_OPEN || c->is_shut) return;
    size_t length = buffer_length(&c->input);
    size_t sent = length ? send_some(r, c, buffer_front(&c->input), length) : 0;
    if (c->is_shut) return;
    buffer_drop(&c->input, sent);
    if (buffer_length(&c->input) > 0) return;
    buffer_free(&c->input); /* most of a thousand connections have nothing to keep */
    if (!c->input_ended) return;
    c->is_shut = true;
    if (shutdown(c->source.fd, SHUT_WR) != 0) note_error(c, errno);
}

static void finish_if_complete(struct runner *r, struct endpoint *c) {
    if (c->output_ended && c->is_shut) endpoint_end(r, c, c->error);
    else watch_connection(r, c);
}

bool connection_take_input(struct runner *r, struct endpoint *c, const struct frame *frame) {
    if (c->input_ended) return frame->length == 0;
    if (buffer_length(&c->input) + frame->length > ENDPOINT_INPUT_MAX) return false;
    if (frame->length == 0) c->input_ended = true;
    if (c->is_shut) return true;
    bool is_direct = c->phase == ENDPOINT_OPEN && buffer_length(&c->input) == 0 && frame->length > 0;
    size_t sent = is_direct ? send_some(r, c, frame->payload, frame->length) : 0;
    if (sent < frame->length && buffer_append(&c->input, frame->payload + sent, frame->length - sent) != 0) return false;
    send_kept(r, c);
    if (c->phase == ENDPOINT_OPEN) finish_if_complete(r, c);
    return true;
}

/* ---- towards the host -------------------------------------------------------------------------------------------- */

static void end_output(struct runner *r, struct endpoint *c, int error) {
    if (error) give_up_writing(c, error);
    else link_send(&r->link, FRAME_STDOUT, c->id, NULL, 0);
    c->output_ended = true;
}

static void read_some(struct runner *r, struct endpoint *c) {
    size_t room = MAX_PAYLOAD_FROM_RUNNER;
    if ((uint64_t)c->credit < room) room = (size_t)c->credit;
    uint8_t *payload = link_begin(&r->link, room);
    if (!payload) return;
    ssize_t n = recv(c->source.fd, payload, room, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
        end_output(r, c, n < 0 ? errno : 0);
        return;
    }
    c->credit -= n;
    link_finish(&r->link, FRAME_STDOUT, c->id, (size_t)n);
}

static int pending_error(const struct endpoint *c) {
    int error = 0;
    socklen_t size = sizeof error;
    return getsockopt(c->source.fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

/* ---- the beginning and the end ----------------------------------------------------------------------------------- */

static void tell_connected(struct runner *r, struct endpoint *c) {
    union address own = {0};
    socklen_t size = sizeof own;
    uint8_t payload[CONNECTED_BYTES];
    int on = 1;
    setsockopt(c->source.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    getsockname(c->source.fd, &own.any, &size);
    address_write(&own, payload);
    address_write(&c->other, payload + ADDRESS_BYTES);
    link_send(&r->link, FRAME_CONNECTED, c->id, payload, sizeof payload);
    c->phase = ENDPOINT_OPEN;
}

static void finish_connecting(struct runner *r, struct endpoint *c) {
    int error = pending_error(c);
    if (error) {
        endpoint_end(r, c, error);
        return;
    }
    tell_connected(r, c);
    send_kept(r, c); /* the host need not have waited */
    finish_if_complete(r, c);
}

static void on_connection(struct runner *r, struct source *s, uint32_t events) {
    struct endpoint *c = s->owner;
    if (c->phase == ENDPOINT_CONNECTING) {
        finish_connecting(r, c);
        return;
    }
    if (events & EPOLLOUT) send_kept(r, c);
    bool has_hung_up = events & (EPOLLHUP | EPOLLERR);
    if (may_receive(r, c)) {
        read_some(r, c);
    } else if (has_hung_up) {
        c->has_hung_up = true;
        if (c->output_ended) give_up_writing(c, pending_error(c)); /* there is nothing left to read */
    }
    finish_if_complete(r, c);
}

static void adopt(struct runner *r, struct endpoint *c, int fd) {
    c->source.fd = fd;
    c->source.on_event = on_connection;
    r->open_connections++;
}

void connection_begin(struct runner *r, struct endpoint *c, int fd, const union address *from) {
    c->other = *from;
    adopt(r, c, fd);
    tell_connected(r, c);
    send_kept(r, c);
    finish_if_complete(r, c);
}

void connection_dial(struct runner *r, uint32_t id, const union address *to) {
    errno = EMFILE;
    int fd = connection_fits(r) ? endpoint_socket(r, to->any.sa_family, SOCK_STREAM) : -1;
    int error = fd < 0 ? errno : 0;
    if (!error && connect(fd, &to->any, address_size(to)) != 0 && errno != EINPROGRESS) error = errno;
    struct endpoint *c = error ? NULL : endpoint_open(r, id, ENDPOINT_CONNECTION);
    if (!c) {
        if (fd >= 0) close(fd);
        endpoint_refuse(r, id, error ? error : ENOMEM);
        return;
    }
    c->phase = ENDPOINT_CONNECTING;
    c->other = *to;
    adopt(r, c, fd);
    watch_connection(r, c);
}

void connection_resume(struct runner *r, struct endpoint *c) {
    if (c->phase == ENDPOINT_OPEN) watch_connection(r, c);
}

void connection_reset(struct runner *r, struct endpoint *c) {
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (is_open(&c->source)) setsockopt(c->source.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    endpoint_end(r, c, ECANCELED);
}
