/* Running a command in a worker: start it, wait for it, and stay until the last process it started is gone. */
#ifndef BRIG_COMMAND_H
#define BRIG_COMMAND_H

#include "job.h"

/* Call this once in a new worker: it makes the worker the new parent of orphans of its commands. */
void command_adopt_orphans(void);

/* Frees the job. Returns once nothing of the command is left; the end of its main process is reported when it comes. */
void command_run(int control, struct received_job *job, struct worker_slot *slot);

#endif
