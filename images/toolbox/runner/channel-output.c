#define _GNU_SOURCE
#include "channel-output.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "channel-input.h"
#include "runner.h"

#define PIPE_BYTES (64u << 10)
#define TERMINAL_READS 16 /* one read of a terminal gives 4 KiB at most */
#define TERMINAL_RETRY_MS 10

bool channel_has_output_open(const struct channel *c) { return is_open(&c->out.source) || is_open(&c->err.source); }

static bool may_read(const struct runner *r, const struct channel *c) {
    if (c->terminal == TERMINAL_HUNG_UP) return false;
    return c->phase >= CHANNEL_EXITED || (c->credit > 0 && !link_is_full(&r->link));
}

void channel_watch_output(struct runner *r, struct channel *c) {
    if (link_is_full(&r->link)) r->output_waits = true;
    uint32_t events = may_read(r, c) ? EPOLLIN : 0;
    watch(r, &c->out.source, events);
    watch(r, &c->err.source, events);
}

void channel_retry_terminal(struct runner *r, struct channel *c) {
    if (c->terminal != TERMINAL_HUNG_UP) return;
    c->terminal = TERMINAL_IN_USE;
    channel_watch_output(r, c);
}

static void settle(struct channel_output *o, size_t bytes) { o->owed -= bytes < o->owed ? bytes : o->owed; }

static void take_end(struct runner *r, struct channel_output *o) {
    struct channel *c = o->channel;
    bool has_terminal = c->terminal != TERMINAL_NONE;
    if (has_terminal && c->phase < CHANNEL_ENDED) {
        /* Closing the terminal now would send SIGHUP to a command that is just about to exit by itself. */
        c->terminal = TERMINAL_HUNG_UP;
        wake_at(r, now_ms() + TERMINAL_RETRY_MS);
        return;
    }
    if (has_terminal) channel_close_input(r, c);
    close_source(r, &o->source);
}

static void send_output(struct runner *r, struct channel_output *o, size_t length) {
    struct channel *c = o->channel;
    if (c->phase < CHANNEL_EXITED) {
        c->credit -= (int64_t)length;
        link_finish(&r->link, o->frame_type, c->id, length);
    } else if (length <= c->late_left && !link_is_full(&r->link)) {
        c->late_left -= length;
        link_finish(&r->link, FRAME_LATE, c->id, length);
    } /* otherwise it is dropped, so that a process that was left running never blocks on its output */
}

bool channel_read_output(struct runner *r, struct channel_output *o) {
    const struct channel *c = o->channel;
    bool is_late = c->phase >= CHANNEL_EXITED;
    size_t room = MAX_PAYLOAD_FROM_RUNNER;
    if (!is_late && (size_t)c->credit < room) room = (size_t)c->credit;
    if (room == 0 || (!is_late && link_is_full(&r->link))) return false;
    uint8_t *payload = link_begin(&r->link, room);
    if (!payload) return false;
    ssize_t n = read(o->source.fd, payload, room);
    if (n < 0 && errno == EINTR) return false;
    settle(o, n > 0 ? (size_t)n : SIZE_MAX);
    if (n < 0 && errno == EAGAIN) return false;
    if (n > 0) send_output(r, o, (size_t)n);
    else take_end(r, o); /* a terminal that nobody has open fails with EIO */
    return n > 0;
}

void channel_read_output_event(struct runner *r, struct channel_output *o) {
    int reads = o->channel->terminal == TERMINAL_NONE ? 1 : TERMINAL_READS;
    while (reads-- > 0 && is_open(&o->source) && channel_read_output(r, o)) continue;
}

/* A terminal does not say how much waits in it, so as much is read from it as a pipe could hold. */
static size_t waiting_bytes(const struct channel_output *o) {
    int waiting = 0;
    if (!is_open(&o->source)) return 0;
    if (o->channel->terminal != TERMINAL_NONE) return PIPE_BYTES;
    return ioctl(o->source.fd, FIONREAD, &waiting) == 0 && waiting > 0 ? (size_t)waiting : 0;
}

void channel_begin_draining(struct channel *c) {
    c->phase = CHANNEL_DRAINING;
    c->out.owed = waiting_bytes(&c->out);
    c->err.owed = waiting_bytes(&c->err);
}

bool channel_drain(struct runner *r, struct channel *c) {
    while (c->out.owed > 0 && channel_read_output(r, &c->out)) continue;
    while (c->err.owed > 0 && channel_read_output(r, &c->err)) continue;
    return c->out.owed + c->err.owed == 0;
}
