/* The effect of the host's frames, and of time, on all channels. */
#ifndef BRIG_CHANNEL_H
#define BRIG_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

struct runner;

/* False when the frame breaks the protocol. */
bool channel_take_frame(struct runner *r, const struct frame *frame);
void channels_tick(struct runner *r, uint64_t now);
/* Reads output again that was held back because the stream to the host was full. */
void channels_resume_output(struct runner *r);

#endif
