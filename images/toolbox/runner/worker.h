/* A worker: a process that is forked before it is needed and runs one job after the other. */
#ifndef BRIG_WORKER_H
#define BRIG_WORKER_H

#include "job.h"

/* The whole life of a worker, in the forked process. `slots` are those of all workers, `slot` is its own. */
_Noreturn void worker_main(int control, const struct worker_slot *slots, struct worker_slot *slot);

#endif
