#define _GNU_SOURCE
#include "bridge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel.h"
#include "network.h"
#include "runner.h"
#include "sha256.h"
#include "tree.h"
#include "wire.h"

#define HELLO_WITHIN_MS 5000
#define ACCEPT_RETRY_MS 100
#define READ_SIZE (64u << 10)
#define PIPE_SIZE (256 << 10)

void bridge_drop(struct runner *r, struct bridge *b) {
    if (!b->is_used) return;
    if (r->host == b) {
        r->host = NULL;
        r->alone_since_ms = now_ms();
        if (r->lease_ms) wake_at(r, r->alone_since_ms + r->lease_ms);
    }
    close_source(r, &b->in);
    close_source(r, &b->out);
    close_source(r, &b->control); /* `connect` waits for this, and its end is the end of the exec */
    buffer_free(&b->input);
    b->is_used = b->is_host = false;
}

/* Takes the same time for every token, so that its duration does not tell how much of the token was right. */
static bool token_is_right(const struct runner *r, const uint8_t *token) {
    struct sha256 hash;
    uint8_t digest[32], difference = 0;
    sha256_begin(&hash);
    sha256_add(&hash, token, TOKEN_BYTES);
    sha256_end(&hash, digest);
    for (int i = 0; i < 32; i++) difference |= digest[i] ^ r->token_hash[i];
    return difference == 0;
}

static bool greet(struct runner *r, struct bridge *b, const struct frame *frame) {
    struct hello hello;
    if (frame->type != FRAME_HELLO || !hello_parse(frame->payload, frame->length, &hello)) return false;
    if (hello.version != PROTOCOL_VERSION || !token_is_right(r, hello.token)) return false;
    if (r->host) bridge_drop(r, r->host);
    if (!link_resume(&r->link, hello.received)) return false;
    r->host = b;
    r->was_connected = b->is_host = true;
    uint8_t payload[WELCOME_BYTES];
    put32(payload, PROTOCOL_VERSION);
    put64(payload + 4, r->link.received);
    put64(payload + 12, r->boot_id);
    link_send_control(&r->link, FRAME_WELCOME, payload, sizeof payload);
    return true;
}

static bool take_session_frame(struct runner *r, const struct frame *frame) {
    switch (frame->type) {
    case FRAME_ACK: return frame->length == 8 && link_acknowledge(&r->link, get64(frame->payload));
    case FRAME_PING: return frame->length <= 64 && link_send_control(&r->link, FRAME_PONG, frame->payload, frame->length) == 0;
    case FRAME_END: exit(0); /* with PID 1 the kernel ends everything in its container */
    default: return false;
    }
}

static bool take_frame(struct runner *r, struct bridge *b, const struct frame *frame) {
    if (!b->is_host) return greet(r, b, frame);
    if (frame->channel == 0) return take_session_frame(r, frame);
    link_count_received(&r->link, frame->length);
    return network_takes(r, frame) ? network_take_frame(r, frame) : channel_take_frame(r, frame);
}

/* False when the bytes break the protocol. Before HELLO the runner waits for nothing that is longer than a HELLO. */
static bool take_frames(struct runner *r, struct bridge *b) {
    while (b->is_used) {
        struct frame frame;
        size_t used;
        size_t limit = b->is_host ? MAX_PAYLOAD_TO_RUNNER : 64;
        enum parse_result result = frame_parse(buffer_front(&b->input), buffer_length(&b->input), limit, &frame, &used);
        if (result == PARSE_MORE) return true;
        if (result == PARSE_BAD || !take_frame(r, b, &frame)) return false;
        if (frame.type == FRAME_HELLO) explicit_bzero(buffer_front(&b->input), used);
        buffer_drop(&b->input, used);
    }
    return true;
}

static void on_stream(struct runner *r, struct source *s, uint32_t events) {
    (void)events;
    struct bridge *b = s->owner;
    uint8_t *room = buffer_reserve(&b->input, READ_SIZE);
    ssize_t n = room ? read(s->fd, room, READ_SIZE) : -1;
    if (n < 0 && room && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
        bridge_drop(r, b);
        return;
    }
    buffer_commit(&b->input, (size_t)n);
    if (!take_frames(r, b)) bridge_drop(r, b);
}

static void on_writable(struct runner *r, struct source *s, uint32_t events) {
    (void)events;
    (void)s;
    host_flush(r);
}

void host_flush(struct runner *r) {
    struct bridge *b = r->host;
    if (!b) return;
    int result = link_flush(&r->link, b->out.fd);
    if (result < 0) bridge_drop(r, b);
    else watch(r, &b->out, result > 0 ? EPOLLOUT : 0);
}

/* A message of `connect`: first it sends a question, then its streams. The kernel adds the sender to both. */
struct bridge_message {
    bool has_sender;
    struct ucred sender;
    int streams[2], stream_count;
};

static void take_ancillary(struct cmsghdr *c, struct bridge_message *out) {
    if (c->cmsg_type == SCM_CREDENTIALS && c->cmsg_len == CMSG_LEN(sizeof out->sender)) {
        memcpy(&out->sender, CMSG_DATA(c), sizeof out->sender);
        out->has_sender = true;
        return;
    }
    if (c->cmsg_type != SCM_RIGHTS) return;
    const uint8_t *at = CMSG_DATA(c), *end = (const uint8_t *)c + c->cmsg_len;
    for (int fd; at < end; at += sizeof fd) {
        memcpy(&fd, at, sizeof fd);
        if (out->stream_count < 2) out->streams[out->stream_count++] = fd;
        else close(fd);
    }
}

/* False when the other side is gone. A message without a sender means that there is nothing yet. */
static bool receive_message(int fd, struct bridge_message *out) {
    char byte;
    struct iovec part = {&byte, 1};
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(2 * sizeof(int))];
    } ancillary;
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &ancillary, .msg_controllen = sizeof ancillary};
    ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (n != 1) return false;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) take_ancillary(c, out);
    return true;
}

/* A process whose parent is 0 was put into this PID namespace from outside, which only the engine can do. */
static bool comes_from_outside(const struct bridge_message *message) {
    return message->has_sender && parent_of(message->sender.pid) == 0;
}

static void adopt_streams(struct runner *r, struct bridge *b, const int streams[2]) {
    for (int i = 0; i < 2; i++) {
        note_fd(r, streams[i]);
        fcntl(streams[i], F_SETFL, fcntl(streams[i], F_GETFL) | O_NONBLOCK);
        fcntl(streams[i], F_SETPIPE_SZ, PIPE_SIZE); /* for fewer and larger writes; it does not matter if the kernel refuses */
    }
    b->in.fd = streams[0];
    b->out.fd = streams[1];
    watch(r, &b->in, EPOLLIN);
}

/* Takes the question, then the streams. Whatever comes after them means that `connect` is gone. */
static void on_control(struct runner *r, struct source *s, uint32_t events) {
    (void)events;
    struct bridge *b = s->owner;
    struct bridge_message message = {0};
    bool received = b->in.fd < 0 && receive_message(s->fd, &message);
    if (received && !message.has_sender) return; /* the event is an old one, of the connection that had this place before */
    bool welcome = received && comes_from_outside(&message);
    bool has_streams = message.stream_count == 2;
    if (welcome && has_streams) adopt_streams(r, b, message.streams);
    else
        for (int i = 0; i < message.stream_count; i++) close(message.streams[i]);
    if (!welcome || (!has_streams && send(s->fd, "!", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)) bridge_drop(r, b);
}

/*
 * Refuses a command at once, so that commands cannot take up all places for connections. gVisor names PID 1 itself as the peer of
 * every connection; there the messages tell who it is.
 */
static bool may_come_from_outside(int fd) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || parent_of(peer.pid) == 0;
}

static struct bridge *free_bridge(struct runner *r) {
    for (int i = 0; i < MAX_BRIDGES; i++)
        if (!r->bridges[i].is_used) return &r->bridges[i];
    return NULL;
}

static void open_bridge(struct runner *r, struct bridge *b, int control, uint64_t patience_ms) {
    *b = (struct bridge){.is_used = true, .deadline_ms = now_ms() + patience_ms};
    b->control = (struct source){.on_event = on_control, .owner = b, .fd = control};
    b->in = (struct source){.on_event = on_stream, .owner = b, .fd = -1};
    b->out = (struct source){.on_event = on_writable, .owner = b, .fd = -1};
    wake_at(r, b->deadline_ms);
}

bool bridges_adopt(struct runner *r, const int streams[2], uint64_t patience_ms) {
    struct bridge *b = free_bridge(r);
    if (!b) return false;
    open_bridge(r, b, -1, patience_ms);
    adopt_streams(r, b, streams);
    return true;
}

void bridges_accept(struct runner *r, struct source *s, uint32_t events) {
    (void)events;
    int fd;
    while ((fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        struct bridge *b = free_bridge(r);
        int on = 1;
        if (!b || !may_come_from_outside(fd) || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
            close(fd);
            continue;
        }
        open_bridge(r, b, fd, HELLO_WITHIN_MS);
        watch(r, &b->control, EPOLLIN);
    }
    if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS) return;
    /* There is no descriptor left. epoll would report the connection that waits again at once, over and over. */
    watch(r, s, 0);
    wake_at(r, r->accept_again_ms = now_ms() + ACCEPT_RETRY_MS);
}

void bridges_tick(struct runner *r, uint64_t now) {
    if (r->accept_again_ms && now >= r->accept_again_ms) {
        r->accept_again_ms = 0;
        watch(r, &r->listener, EPOLLIN);
    } else if (r->accept_again_ms) {
        wake_at(r, r->accept_again_ms);
    }
    for (int i = 0; i < MAX_BRIDGES; i++) {
        struct bridge *b = &r->bridges[i];
        if (!b->is_used || b->is_host) continue;
        if (now >= b->deadline_ms) bridge_drop(r, b);
        else wake_at(r, b->deadline_ms);
    }
}
