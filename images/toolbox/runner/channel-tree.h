/* Signals for a command, and the end of everything it has started. */
#ifndef BRIG_CHANNEL_TREE_H
#define BRIG_CHANNEL_TREE_H

#include "channel-state.h"

/* Whether the job may still have processes that can be ended. */
bool channel_has_tree(const struct channel *c);

/* Begins to end the tree, if that has not begun yet. A file operation is told to stop. */
void channel_end_tree(struct runner *r, struct channel *c, uint32_t grace_ms);
/* Goes on with it when its time has come. True when it has just been given up. */
bool channel_advance_tree_end(struct runner *r, struct channel *c, uint64_t now);

/* Ends what commands that are over have left running, and waits until none of it is left, or for a few seconds. False if there was nothing. */
bool channels_end_leftovers(struct runner *r);

void channel_send_pending_signals(struct runner *r, struct channel *c);

#endif
