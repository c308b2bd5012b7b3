/* A worker: a process that is forked before it is needed and runs one job after the other. */
#ifndef BRIG_WORKER_H
#define BRIG_WORKER_H

#include "job.h"

struct worker_place {
    int control, shared_fd;
    struct shared *shared;
    struct worker_slot *slot; /* its own */
};

/* The whole life of a worker, in the forked process. */
_Noreturn void worker_main(const struct worker_place *place);

#endif
