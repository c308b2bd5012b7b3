/* Who runs first in here: the runner before the commands, whatever these are and do. */
#ifndef BRIG_SCHEDULING_H
#define BRIG_SCHEDULING_H

/* In PID 1, before it forks: how it was given its processors. */
void scheduling_remember(void);

/* In a worker, before each job: a command may have bound it to one processor, and its own command would inherit that. */
void scheduling_unbind(void);

/*
 * In the child that becomes a command: behind the runner and the supervisors, which hundreds that spin would else keep from
 * running for seconds. Outside the container it changes nothing, since the engine gives each a share of the processors of its own.
 */
void scheduling_make_way(void);

#endif
