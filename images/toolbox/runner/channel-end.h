/* The end of a channel: from the report of its worker to the EXIT frame, and until nothing of the channel is left. */
#ifndef BRIG_CHANNEL_END_H
#define BRIG_CHANNEL_END_H

#include "channel-state.h"

extern const struct job_events channel_job_events;

/* Writes EXIT and sends it as soon as nothing holds it back. Later calls for the same channel change nothing. */
void channel_ended(struct runner *r, struct channel *c, const struct worker_report *report, const uint8_t *result);
/* Call this when the command could not be started, or the file operation was not carried out. */
void channel_not_started(struct runner *r, struct channel *c, uint32_t stage, int error);
/* Call this when the command is not supervised any more, so that nobody knows how it ended. */
void channel_lost(struct runner *r, struct channel *c);

/* Sends EXIT if it is complete, and retires the channel if it is over. Needed after every change that may lead to either. */
void channel_finish_if_complete(struct runner *r, struct channel *c);
void channel_resume_output(struct runner *r, struct channel *c);
void channel_on_output(struct runner *r, struct source *s, uint32_t events);

void channels_free_retired(struct runner *r);

#endif
