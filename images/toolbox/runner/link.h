/* The reliable half of the stream: frames towards the host are kept until the host says it has them. */
#ifndef BRIG_LINK_H
#define BRIG_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"

/* Above this many kept bytes the runner reads no more output until the host acknowledges. */
#define LINK_HIGH_WATER (4u << 20)

struct link {
    struct buffer kept;    /* counted frames the host has not acknowledged, oldest first */
    struct buffer control; /* uncounted frames waiting to be written */
    uint64_t acknowledged; /* counted frames dropped from `kept` */
    uint64_t queued;       /* counted frames ever appended */
    size_t written;        /* bytes of `kept` already on the current connection */
    size_t frame_left;     /* of those, what is missing of the last, partly written frame */
    uint64_t received;     /* counted frames taken from the host */
    uint64_t told;         /* how many of them the host has been told about */
    size_t untold_bytes;
};

/* Payload space for a frame to be filled in place, e.g. by read(2); it exists only once link_finish is called. */
uint8_t *link_begin(struct link *link, size_t max_payload);
void link_finish(struct link *link, uint8_t type, uint32_t channel, size_t length);
int link_send(struct link *link, uint8_t type, uint32_t channel, const void *payload, size_t length);
int link_send_control(struct link *link, uint8_t type, const void *payload, size_t length);

/* Writes what it can. 0: all written, 1: the descriptor is full, -1: broken. */
int link_flush(struct link *link, int fd);

/* The host has `frames` frames. False when it claims what it cannot have. */
bool link_acknowledge(struct link *link, uint64_t frames);

/* A new connection whose host has `frames` frames: everything after them will be written again. */
bool link_resume(struct link *link, uint64_t frames);

/* One counted frame of `bytes` was taken in; tells the host when it is time. */
void link_count_received(struct link *link, size_t bytes);

bool link_is_full(const struct link *link);

#endif
