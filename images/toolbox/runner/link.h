/* Frames to the host. They are kept until the host acknowledges them, and written again on a new connection. */
#ifndef BRIG_LINK_H
#define BRIG_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"

/* The most credit that a host may leave unused. More can only be a mistake, or an attempt to make the number overflow. */
#define CREDIT_MAX (64 << 20)
/* Above this many kept bytes the runner reads no more output until the host acknowledges. */
#define LINK_HIGH_WATER (4u << 20)

struct link {
    struct buffer kept;    /* counted frames that the host has not acknowledged, oldest first */
    struct buffer control; /* uncounted frames that are not written yet */
    uint64_t acknowledged; /* how many counted frames the host has acknowledged */
    uint64_t queued;       /* how many counted frames there were so far */
    size_t written;        /* bytes of `kept` that were written on the current connection */
    size_t frame_left;     /* bytes that are still missing of a frame that was written in part */
    uint64_t received;     /* how many counted frames have come from the host */
    uint64_t told;         /* how many of these the last ACK covered */
    size_t untold_bytes;   /* bytes of the others */
};

/* Memory for a payload, so that read(2) can write it in place. There is no frame before link_finish. NULL when memory is out. */
uint8_t *link_begin(struct link *link, size_t max_payload);
void link_finish(struct link *link, uint8_t type, uint32_t channel, size_t length);
int link_send(struct link *link, uint8_t type, uint32_t channel, const void *payload, size_t length);
/* Counts input of a channel that is taken, and grants the host as much again once it is worth a frame. `*taken` is not granted yet. */
void link_grant(struct link *link, uint32_t channel, uint32_t *taken, size_t bytes);
int link_send_control(struct link *link, uint8_t type, const void *payload, size_t length);

/* Writes as much as possible. 0 when everything is written, 1 when the descriptor takes no more for now, -1 when it is broken. */
int link_flush(struct link *link, int fd);

/* Takes the host's word that it has received `frames` frames. False when that is impossible. */
bool link_acknowledge(struct link *link, uint64_t frames);

/* The same on a new connection: the frames after these will be written again. */
bool link_resume(struct link *link, uint64_t frames);

/* Counts a frame of the host with a payload of `bytes`, and sends an ACK when it is time. */
void link_count_received(struct link *link, size_t bytes);

bool link_is_full(const struct link *link);

#endif
