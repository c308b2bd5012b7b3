#include "link.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "wire.h"

#define GRANT_STEP (INITIAL_CREDIT / 2)

uint8_t *link_begin(struct link *link, size_t max_payload) {
    uint8_t *room = buffer_reserve(&link->kept, HEADER_BYTES + max_payload);
    return room ? room + HEADER_BYTES : NULL;
}

void link_finish(struct link *link, uint8_t type, uint32_t channel, size_t length) {
    frame_header(link->kept.data + link->kept.end, type, channel, (uint32_t)length);
    buffer_commit(&link->kept, HEADER_BYTES + length);
    link->queued++;
}

int link_send(struct link *link, uint8_t type, uint32_t channel, const void *payload, size_t length) {
    uint8_t *room = link_begin(link, length);
    if (!room) return -1;
    if (length) memcpy(room, payload, length);
    link_finish(link, type, channel, length);
    return 0;
}

void link_grant(struct link *link, uint32_t channel, uint32_t *taken, size_t bytes) {
    uint8_t payload[4];
    *taken += (uint32_t)bytes;
    if (*taken < GRANT_STEP) return;
    put32(payload, *taken);
    link_send(link, FRAME_CREDIT_FROM_RUNNER, channel, payload, sizeof payload);
    *taken = 0;
}

int link_send_control(struct link *link, uint8_t type, const void *payload, size_t length) {
    uint8_t header[HEADER_BYTES];
    frame_header(header, type, 0, (uint32_t)length);
    if (buffer_append(&link->control, header, sizeof header) != 0) return -1;
    return buffer_append(&link->control, payload, length);
}

static void advance(struct link *link, size_t n) {
    while (n > 0) {
        if (link->frame_left == 0) link->frame_left = HEADER_BYTES + get32(buffer_front(&link->kept) + link->written);
        size_t step = n < link->frame_left ? n : link->frame_left;
        link->written += step;
        link->frame_left -= step;
        n -= step;
    }
}

int link_flush(struct link *link, int fd) {
    for (;;) {
        /* A control frame may be written only where a kept frame ends. */
        bool control = link->frame_left == 0 && buffer_length(&link->control) > 0;
        size_t length = control ? buffer_length(&link->control) : buffer_length(&link->kept) - link->written;
        if (!control && buffer_length(&link->control) > 0) length = link->frame_left;
        if (length == 0) return 0;
        const uint8_t *from = control ? buffer_front(&link->control) : buffer_front(&link->kept) + link->written;
        ssize_t n = write(fd, from, length);
        if (n < 0) {
            if (errno == EINTR) continue;
            return errno == EAGAIN ? 1 : -1;
        }
        if (control) buffer_drop(&link->control, (size_t)n);
        else advance(link, (size_t)n);
    }
}

bool link_acknowledge(struct link *link, uint64_t frames) {
    if (frames < link->acknowledged || frames > link->queued) return false;
    size_t bytes = 0;
    for (uint64_t i = link->acknowledged; i < frames; i++) bytes += HEADER_BYTES + get32(buffer_front(&link->kept) + bytes);
    size_t whole = link->written - (link->frame_left ? 1 : 0);
    if (bytes > link->written || (bytes > 0 && bytes > whole)) return false;
    buffer_drop(&link->kept, bytes);
    link->written -= bytes;
    link->acknowledged = frames;
    return true;
}

bool link_resume(struct link *link, uint64_t frames) {
    if (frames < link->acknowledged || frames > link->queued) return false;
    link->frame_left = 0;
    link->written = buffer_length(&link->kept); /* the host may acknowledge frames that came over an earlier connection */
    if (!link_acknowledge(link, frames)) return false;
    link->written = 0;
    link->told = link->received;
    link->untold_bytes = 0;
    buffer_drop(&link->control, buffer_length(&link->control));
    return true;
}

void link_count_received(struct link *link, size_t bytes) {
    link->received++;
    link->untold_bytes += bytes;
    if (link->received - link->told < ACK_EVERY_FRAMES && link->untold_bytes < ACK_EVERY_BYTES) return;
    uint8_t payload[8];
    put64(payload, link->received);
    link_send_control(link, FRAME_ACK_FROM_RUNNER, payload, sizeof payload);
    link->told = link->received;
    link->untold_bytes = 0;
}

bool link_is_full(const struct link *link) { return buffer_length(&link->kept) >= LINK_HIGH_WATER; }
