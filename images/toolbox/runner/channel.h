/* One command or file operation: its streams, its process tree, and what frames and time do to it. */
#ifndef BRIG_CHANNEL_H
#define BRIG_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

struct runner;
struct channel;

struct channel *channel_find(const struct runner *r, uint32_t id);
void channels_start_queued(struct runner *r);
/* False when the frame breaks the protocol. */
bool channel_take_frame(struct runner *r, const struct frame *frame);
void channels_tick(struct runner *r);
/* Reads output again that was held back because the stream to the host was full. */
void channels_resume_output(struct runner *r);

#endif
