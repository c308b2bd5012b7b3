#include "channel-input.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runner.h"

#define GRANT_STEP (INITIAL_CREDIT / 2)
#define INPUT_MAX (2u * INITIAL_CREDIT)
#define TERMINAL_INPUT_RETRY_MS 10

static void grant(struct runner *r, struct channel *c, size_t bytes) {
    c->in.taken += (uint32_t)bytes;
    if (c->in.taken < GRANT_STEP) return;
    uint8_t payload[4];
    put32(payload, c->in.taken);
    link_send(&r->link, FRAME_CREDIT_FROM_RUNNER, c->id, payload, sizeof payload);
    c->in.taken = 0;
}

static void discard_input(struct runner *r, struct channel *c) {
    size_t length = buffer_length(&c->in.bytes);
    buffer_drop(&c->in.bytes, length);
    if (length) grant(r, c, length);
}

/* A terminal has one descriptor for both directions. The output owns it, so the input only forgets it. */
void channel_close_input(struct runner *r, struct channel *c) {
    if (c->terminal != TERMINAL_NONE) c->in.source.fd = -1;
    else close_source(r, &c->in.source);
}

void channel_write_input(struct runner *r, struct channel *c) {
    struct buffer *bytes = &c->in.bytes;
    int fd = c->in.source.fd;
    while (fd >= 0 && buffer_length(bytes) > 0) {
        ssize_t n = write(fd, buffer_front(bytes), buffer_length(bytes));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        if (n < 0) { /* no process reads it any more */
            channel_close_input(r, c);
            fd = -1;
            break;
        }
        buffer_drop(bytes, (size_t)n);
        grant(r, c, (size_t)n);
    }
    if (fd < 0) discard_input(r, c);
    bool is_waiting = buffer_length(bytes) > 0;
    if (c->in.has_ended && !is_waiting) channel_close_input(r, c);
    /* epoll takes a descriptor once, and a terminal's is there as output. So writing to it is tried again on a timer. */
    if (c->terminal == TERMINAL_NONE) watch(r, &c->in.source, is_waiting ? EPOLLOUT : 0);
    else if (is_waiting) wake_at(r, now_ms() + TERMINAL_INPUT_RETRY_MS);
}

bool channel_take_input(struct runner *r, struct channel *c, const struct frame *frame) {
    static const uint8_t end_of_transmission = 4; /* Ctrl-D, which is how a terminal's input ends */
    if (c->in.has_ended) return frame->length == 0;
    if (buffer_length(&c->in.bytes) + frame->length > INPUT_MAX) return false;
    if (frame->length == 0) {
        c->in.has_ended = true;
        if (c->terminal != TERMINAL_NONE) buffer_append(&c->in.bytes, &end_of_transmission, 1);
    } else if (buffer_append(&c->in.bytes, frame->payload, frame->length) != 0) {
        return false;
    }
    channel_write_input(r, c);
    return true;
}
