/* Signals for a command, and the end of everything it has started. */
#ifndef BRIG_CHANNEL_TREE_H
#define BRIG_CHANNEL_TREE_H

#include "channel-state.h"

/* Whether the job may still have processes that can be ended. */
bool channel_has_tree(const struct channel *c);

/* Begins to end the tree, unless that has begun already. A file operation is told to stop. */
void channel_end_tree(struct runner *r, struct channel *c, uint32_t grace_ms);
/* Takes the next step of ending the tree when its time has come. True when that has just been given up. */
bool channel_advance_tree_end(struct runner *r, struct channel *c, uint64_t now);

/* Ends the processes that ended commands have left, and waits until they are gone, or for a few seconds. False if there were none. */
bool channels_end_leftovers(struct runner *r);

void channel_send_pending_signals(struct runner *r, struct channel *c);

#endif
