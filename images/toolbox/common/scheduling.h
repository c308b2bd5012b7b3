/* The runner gets processor time before the commands, whatever these do. */
#ifndef BRIG_SCHEDULING_H
#define BRIG_SCHEDULING_H

/* Call in PID 1 before it forks: remembers on which processors it may run. */
void scheduling_remember(void);

/* Call in a worker before each job. A command may have bound the worker to one processor, and the next command would inherit that. */
void scheduling_unbind(void);

/*
 * Call in the process that becomes a command: lowers its priority, because hundreds of processes that spin would keep the runner
 * from running for seconds. Other containers are not affected, since the engine gives each its own share of the processors.
 */
void scheduling_make_way(void);

#endif
