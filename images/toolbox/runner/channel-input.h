/* Input: from the host's INPUT frames to the command's stdin, with credit for what it has taken. */
#ifndef BRIG_CHANNEL_INPUT_H
#define BRIG_CHANNEL_INPUT_H

#include "channel-state.h"
#include "wire.h"

/* False when the host sends more than it was granted. */
bool channel_take_input(struct runner *r, struct channel *c, const struct frame *frame);
void channel_write_input(struct runner *r, struct channel *c);
void channel_close_input(struct runner *r, struct channel *c);

#endif
