#define _GNU_SOURCE
#include "network.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "address.h"
#include "buffer.h"
#include "channel.h"
#include "loop.h"
#include "runner.h"

/* The bytes that the host may send before it is granted more. It is also the most that one connection keeps in memory. */
#define ENDPOINT_INPUT_MAX (2u * INITIAL_CREDIT)

enum endpoint_kind { ENDPOINT_LISTENER, ENDPOINT_DATAGRAMS, ENDPOINT_CONNECTION };

/* A connection only goes forward through these. Other endpoints are open at once. */
enum endpoint_phase {
    ENDPOINT_WAITING,    /* waits for a program to connect to its listener */
    ENDPOINT_CONNECTING, /* is being made to a server in the sandbox */
    ENDPOINT_OPEN,
    ENDPOINT_RETIRED, /* EXIT is sent; it is freed at the end of the loop's turn */
};

struct endpoint {
    struct later later;
    struct endpoint *next;
    uint32_t id;
    enum endpoint_kind kind;
    enum endpoint_phase phase;
    struct source source;
    int64_t credit; /* how much the host still takes */

    /* The fields of a listener: the connections that wait for a program, in their order. */
    struct endpoint *first_waiting, **waiting_end;
    uint64_t accept_again_ms; /* when it tries again because there was no descriptor, or 0 */

    /* The fields of a connection. */
    union address other;                      /* the end that is not the runner's */
    struct endpoint *listener, *next_waiting; /* while it waits */
    struct buffer input;                      /* bytes that the program inside has not taken yet */
    uint32_t taken;                           /* bytes that it has taken, for which no new credit was granted yet */
    bool input_ended;                         /* the host has sent the end of file */
    bool is_shut;                             /* the program will read the end of file, or nothing any more */
    bool output_ended;                        /* the host has got the end of file */
    bool has_hung_up;                         /* the kernel said so while nothing could be read */
    int error;                                /* the first errno of the connection, or 0 */
};

/* ---- all sockets ------------------------------------------------------------------------------------------------- */

/* The kernel has a limit of its own for connections that wait, which is usually 4096. */
#define BACKLOG 4096
/* The kernel's buffer for each direction of a socket: a thousand sockets that nobody reads must not take gigabytes. */
#define KERNEL_BYTES (256 << 10)

static struct endpoint *endpoint_find(const struct runner *r, uint32_t id) {
    struct endpoint *e = r->endpoints[id % CHANNEL_BUCKETS];
    while (e && e->id != id) e = e->next;
    return e;
}

/* NULL when there is no memory. `fd` belongs to it; -1 for a connection that is not made yet. */
static struct endpoint *endpoint_open(struct runner *r, uint32_t id, enum endpoint_kind kind) {
    struct endpoint *e = calloc(1, sizeof *e);
    if (!e) return NULL;
    e->id = id;
    e->kind = kind;
    e->phase = ENDPOINT_OPEN;
    e->credit = INITIAL_CREDIT;
    e->waiting_end = &e->first_waiting;
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

/* A socket that does not block, or -1 with errno. */
static int endpoint_socket(struct runner *r, int family, int type) {
    int bytes = KERNEL_BYTES;
    int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    if (!may_use_fd(r, fd)) return close_failed(fd);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    return fd;
}

/* The same, bound to this address, to which programs may connect if it is a stream. Port 0 becomes one that is free. */
static int endpoint_bind(struct runner *r, int type, union address *at) {
    int on = 1;
    socklen_t size = address_size(at);
    int fd = endpoint_socket(r, at->any.sa_family, type);
    if (fd < 0) return -1;
    /* Connections that have just been closed do not keep a port from being listened on. Another listener does. */
    if (type == SOCK_STREAM) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    bool is_bound = bind(fd, &at->any, size) == 0 && getsockname(fd, &at->any, &size) == 0;
    return is_bound && (type != SOCK_STREAM || listen(fd, BACKLOG) == 0) ? fd : close_failed(fd);
}

/* Sends EXIT for a request that failed before there was a socket. */
static void endpoint_refuse(struct runner *r, uint32_t id, int error) {
    uint8_t payload[EXIT_HEAD_BYTES] = {EXIT_SOCKET};
    put32(payload + 4, (uint32_t)error);
    link_send(&r->link, FRAME_EXIT, id, payload, sizeof payload);
}

/* Opens an endpoint with this socket, or refuses the request. The socket is -1, with errno, if it could not be made. */
static struct endpoint *endpoint_with(struct runner *r, uint32_t id, enum endpoint_kind kind, int fd) {
    int error = fd < 0 ? errno : ENOMEM;
    struct endpoint *e = fd < 0 ? NULL : endpoint_open(r, id, kind);
    if (e) {
        e->source.fd = fd;
        return e;
    }
    if (fd >= 0) close(fd);
    endpoint_refuse(r, id, error);
    return NULL;
}

/* The same for a socket that is bound to this address, which the host is told. */
static struct endpoint *endpoint_at(struct runner *r, uint32_t id, enum endpoint_kind kind, const union address *at) {
    union address bound = *at;
    uint8_t payload[ADDRESS_BYTES];
    int fd = endpoint_bind(r, kind == ENDPOINT_LISTENER ? SOCK_STREAM : SOCK_DGRAM, &bound);
    struct endpoint *e = endpoint_with(r, id, kind, fd);
    if (!e) return NULL;
    address_write(&bound, payload);
    link_send(&r->link, FRAME_BOUND, id, payload, sizeof payload);
    return e;
}

/* Sends EXIT for the endpoint and closes its socket. */
static void endpoint_end(struct runner *r, struct endpoint *e, int error) {
    struct endpoint **at = &r->endpoints[e->id % CHANNEL_BUCKETS];
    while (*at != e) at = &(*at)->next;
    *at = e->next;
    if (e->kind == ENDPOINT_CONNECTION && is_open(&e->source)) r->open_connections--;
    close_source(r, &e->source);
    buffer_free(&e->input);
    endpoint_refuse(r, e->id, error);
    e->phase = ENDPOINT_RETIRED;
    free_later(r, &e->later);
}

static void for_each_endpoint(struct runner *r, void (*act)(struct runner *, struct endpoint *)) {
    for (int i = 0; i < CHANNEL_BUCKETS; i++)
        for (struct endpoint *e = r->endpoints[i], *next; e; e = next) {
            next = e->next; /* it may be retired meanwhile */
            act(r, e);
        }
}

/* ---- a connection with a program --------------------------------------------------------------------------------- */

/* Whether one more connection may be open. Half of all descriptors are left for commands. */
static bool connection_fits(const struct runner *r) { return r->open_connections < r->fd_limit / 2; }

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
    link_grant(&r->link, c->id, &c->taken, sent);
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

/* False when the host sends more than it was granted, or something after the end. */
static bool connection_take_input(struct runner *r, struct endpoint *c, const struct frame *frame) {
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

/* Tells the host that there is a connection, and passes on what the host has sent for it before. */
static void begin_connection(struct runner *r, struct endpoint *c) {
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
    send_kept(r, c);
    finish_if_complete(r, c);
}

static void finish_connecting(struct runner *r, struct endpoint *c) {
    int error = pending_error(c);
    if (error) endpoint_end(r, c, error);
    else begin_connection(r, c);
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

/* Starts to connect to a server in the sandbox. */
static void connection_dial(struct runner *r, uint32_t id, const union address *to) {
    errno = EMFILE;
    int fd = connection_fits(r) ? endpoint_socket(r, to->any.sa_family, SOCK_STREAM) : -1;
    if (fd >= 0 && connect(fd, &to->any, address_size(to)) != 0 && errno != EINPROGRESS) fd = close_failed(fd);
    struct endpoint *c = endpoint_with(r, id, ENDPOINT_CONNECTION, fd);
    if (!c) return;
    c->phase = ENDPOINT_CONNECTING;
    c->other = *to;
    adopt(r, c, fd);
    watch_connection(r, c);
}

/* ---- a socket that programs connect to --------------------------------------------------------------------------- */

/* The host opens channels ahead of time, one for each connection to come. */

#define ACCEPT_AGAIN_MS 100

/* Takes a channel off the list of those that wait for a connection. */
static void listener_forget(struct endpoint *waiting) {
    struct endpoint *listener = waiting->listener, **at = &listener->first_waiting;
    while (*at != waiting) at = &(*at)->next_waiting;
    *at = waiting->next_waiting;
    if (!*at) listener->waiting_end = at;
    waiting->listener = waiting->next_waiting = NULL;
}

static struct endpoint *take_waiting(struct endpoint *listener) {
    struct endpoint *c = listener->first_waiting;
    listener_forget(c);
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
        union address from = {0};
        socklen_t size = sizeof from;
        errno = EMFILE;
        int fd = connection_fits(r) ? accept4(s->fd, &from.any, &size, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (fd >= 0 && !may_use_fd(r, fd)) fd = close_failed(fd);
        if (fd < 0) {
            if (errno != EAGAIN) pause_accepting(r, listener);
            break;
        }
        struct endpoint *c = take_waiting(listener);
        c->other = from;
        adopt(r, c, fd);
        begin_connection(r, c);
    }
    watch_listener(r, listener);
}

static void listener_open(struct runner *r, uint32_t id, const union address *at) {
    struct endpoint *listener = endpoint_at(r, id, ENDPOINT_LISTENER, at);
    if (listener) listener->source.on_event = on_connections;
}

/* Adds a channel for the next connection. False when there is no memory. */
static bool listener_add(struct runner *r, struct endpoint *listener, uint32_t id) {
    struct endpoint *c = endpoint_open(r, id, ENDPOINT_CONNECTION);
    if (!c) return false;
    c->phase = ENDPOINT_WAITING;
    c->listener = listener;
    *listener->waiting_end = c;
    listener->waiting_end = &c->next_waiting;
    watch_listener(r, listener);
    return true;
}

/* ---- a socket that programs send datagrams to -------------------------------------------------------------------- */

/* The host answers datagrams. Those without room are dropped. */

#define READS_AT_ONCE 16

/* Reads again, after new credit or when the link has room again. If nothing is read, the kernel keeps a few datagrams and drops the others. */
static void datagrams_resume(struct runner *r, struct endpoint *e) {
    bool is_full = link_is_full(&r->link);
    if (is_full) r->network_waits = true;
    watch(r, &e->source, e->credit > 0 && !is_full ? EPOLLIN : 0);
}

/* False when there is no further datagram for now. */
static bool receive_one(struct runner *r, struct endpoint *e) {
    union address from = {0};
    socklen_t size = sizeof from;
    size_t room = MAX_PAYLOAD_FROM_RUNNER - ADDRESS_BYTES;
    uint8_t *payload = link_begin(&r->link, MAX_PAYLOAD_FROM_RUNNER);
    if (!payload) return false;
    ssize_t n = recvfrom(e->source.fd, payload + ADDRESS_BYTES, room, MSG_DONTWAIT | MSG_TRUNC, &from.any, &size);
    if (n < 0) return errno == EINTR;
    if ((size_t)n > room) return true; /* half of a datagram is of no use */
    address_write(&from, payload);
    size_t length = ADDRESS_BYTES + (size_t)n;
    e->credit -= (int64_t)length;
    link_finish(&r->link, FRAME_DATAGRAM_FROM_RUNNER, e->id, length);
    return true;
}

static void on_datagrams(struct runner *r, struct source *s, uint32_t events) {
    (void)events;
    struct endpoint *e = s->owner;
    for (int i = 0; i < READS_AT_ONCE && e->credit > 0 && !link_is_full(&r->link) && receive_one(r, e); i++) continue;
    datagrams_resume(r, e);
}

static void datagrams_open(struct runner *r, uint32_t id, const union address *at) {
    struct endpoint *e = endpoint_at(r, id, ENDPOINT_DATAGRAMS, at);
    if (!e) return;
    e->source.on_event = on_datagrams;
    datagrams_resume(r, e);
}

/* Sends a datagram to a program. False when the frame is malformed. */
static bool datagrams_take(const struct endpoint *e, const struct frame *frame) {
    union address to;
    if (frame->length < ADDRESS_BYTES || !address_parse(frame->payload, &to)) return false;
    /* The kernel's answer does not matter, because datagrams may be lost. */
    (void)!sendto(e->source.fd, frame->payload + ADDRESS_BYTES, frame->length - ADDRESS_BYTES, MSG_DONTWAIT | MSG_NOSIGNAL, &to.any, address_size(&to));
    return true;
}

/* ---- frames and time --------------------------------------------------------------------------------------------- */

static bool is_request(uint8_t type) { return type == FRAME_LISTEN || type == FRAME_ACCEPT || type == FRAME_CONNECT; }

bool network_takes(const struct runner *r, const struct frame *frame) {
    return is_request(frame->type) || frame->type == FRAME_DATAGRAM || endpoint_find(r, frame->channel);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static bool take_listen(struct runner *r, const struct frame *frame) {
    union address at;
    if (frame->length != LISTEN_BYTES || get32(frame->payload) >> 8 != 0 || !address_parse(frame->payload + 4, &at)) return false;
    switch (frame->payload[0]) {
    case LISTEN_STREAM: listener_open(r, frame->channel, &at); return true;
    case LISTEN_DATAGRAMS: datagrams_open(r, frame->channel, &at); return true;
    default: return false;
    }
}

static bool take_accept(struct runner *r, const struct frame *frame) {
    if (frame->length != 4) return false;
    struct endpoint *listener = endpoint_find(r, get32(frame->payload));
    if (listener && listener->kind != ENDPOINT_LISTENER) return false;
    if (listener) return listener_add(r, listener, frame->channel);
    endpoint_refuse(r, frame->channel, ECANCELED); /* it was closed before this came */
    return true;
}

static bool take_connect(struct runner *r, const struct frame *frame) {
    union address to;
    if (frame->length != ADDRESS_BYTES || !address_parse(frame->payload, &to)) return false;
    connection_dial(r, frame->channel, &to);
    return true;
}

static bool take_request(struct runner *r, const struct frame *frame) {
    if (endpoint_find(r, frame->channel) || channel_find(r, frame->channel)) return false;
    switch (frame->type) {
    case FRAME_LISTEN: return take_listen(r, frame);
    case FRAME_ACCEPT: return take_accept(r, frame);
    default: return take_connect(r, frame);
    }
}

/* ---- other frames ------------------------------------------------------------------------------------------------ */

static void resume_endpoint(struct runner *r, struct endpoint *e) {
    if (e->kind == ENDPOINT_CONNECTION && e->phase == ENDPOINT_OPEN) watch_connection(r, e);
    if (e->kind == ENDPOINT_DATAGRAMS) datagrams_resume(r, e);
}

/* Ends the channels that wait for a listener's connections with it. A program gets a reset of its connection, not an end of file. */
static void close_endpoint(struct runner *r, struct endpoint *e) {
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    while (e->first_waiting) endpoint_end(r, take_waiting(e), ECANCELED);
    if (e->listener) listener_forget(e);
    if (e->kind == ENDPOINT_CONNECTION && is_open(&e->source)) setsockopt(e->source.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    endpoint_end(r, e, ECANCELED);
}

bool network_take_frame(struct runner *r, const struct frame *frame) {
    if (is_request(frame->type)) return take_request(r, frame);
    struct endpoint *e = endpoint_find(r, frame->channel);
    if (!e) return true; /* a datagram for a socket that is closed */
    switch (frame->type) {
    case FRAME_INPUT: return e->kind == ENDPOINT_CONNECTION && connection_take_input(r, e, frame);
    case FRAME_DATAGRAM: return e->kind == ENDPOINT_DATAGRAMS && datagrams_take(e, frame);
    case FRAME_KILL:
        if (frame->length != 4) return false;
        close_endpoint(r, e);
        return true;
    case FRAME_CREDIT:
        if (frame->length != 4) return false;
        e->credit += get32(frame->payload);
        if (e->credit > CREDIT_MAX) return false;
        resume_endpoint(r, e);
        return true;
    default: return false;
    }
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

/* Accepts again where there was no descriptor for the next connection. */
static void tick_endpoint(struct runner *r, struct endpoint *e) {
    if (!e->accept_again_ms) return;
    if (now_ms() < e->accept_again_ms) {
        wake_at(r, e->accept_again_ms);
        return;
    }
    e->accept_again_ms = 0;
    watch_listener(r, e);
}

void network_tick(struct runner *r) { for_each_endpoint(r, tick_endpoint); }

void network_resume(struct runner *r) {
    if (!r->network_waits || link_is_full(&r->link)) return;
    r->network_waits = false;
    for_each_endpoint(r, resume_endpoint);
}
