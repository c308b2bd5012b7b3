/* From a SPAWN or FILE frame to a worker that has the job. */
#ifndef BRIG_CHANNEL_START_H
#define BRIG_CHANNEL_START_H

#include "channel-state.h"
#include "wire.h"

struct channel *channel_find(const struct runner *r, uint32_t id);

/* False when the request breaks the protocol. A command that cannot be started is an EXIT like any other. */
bool channel_start_command(struct runner *r, const struct frame *frame);
bool channel_start_file(struct runner *r, const struct frame *frame);

void channels_start_queued(struct runner *r);
void channel_cancel_queued(struct runner *r, struct channel *c);

#endif
