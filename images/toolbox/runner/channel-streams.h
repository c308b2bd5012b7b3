/* Making the pipes or the terminal between PID 1 and a worker. */
#ifndef BRIG_CHANNEL_STREAMS_H
#define BRIG_CHANNEL_STREAMS_H

#include "channel-state.h"
#include "wire.h"

/* The worker's ends, in the order in which a job has them. The channel keeps the other ends. */
struct job_streams {
    int fds[JOB_STREAMS];
    int count;
};

/* False with errno, and nothing left open for the worker, when they cannot be made. */
bool streams_for_command(struct runner *r, struct channel *c, const struct spawn_request *request, struct job_streams *out);
bool streams_for_file(struct runner *r, struct channel *c, const struct file_request *request, struct job_streams *out);
void streams_close(const struct job_streams *streams);

#endif
