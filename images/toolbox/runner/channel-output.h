/* Output: from the command's stdout and stderr to the host, as far as it has granted credit. */
#ifndef BRIG_CHANNEL_OUTPUT_H
#define BRIG_CHANNEL_OUTPUT_H

#include "channel-state.h"

bool channel_has_output_open(const struct channel *c);

/* Reads once. False at the end of the stream, or when nothing more can be read for now. */
bool channel_read_output(struct runner *r, struct channel_output *o);
/* Reads as much as one event of the stream stands for. */
void channel_read_output_event(struct runner *r, struct channel_output *o);

/* Waits for output on every stream that may be read now. Needed after every change of credit, phase or terminal. */
void channel_watch_output(struct runner *r, struct channel *c);

/* Looks again at a terminal that nobody had open. */
void channel_retry_terminal(struct runner *r, struct channel *c);

/* Begins CHANNEL_DRAINING: the bytes that lie in the streams now belong to the call. */
void channel_begin_draining(struct channel *c);
/* Reads the bytes that the call still owes. True when all of them are read. */
bool channel_drain(struct runner *r, struct channel *c);

#endif
