/* The event loop of PID 1: its clock, its one timer, and the descriptors it waits for. */
#ifndef BRIG_LOOP_H
#define BRIG_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct runner;

/* One descriptor. What contains it is freed later, because the batch of events at hand may still contain it. */
struct source {
    void (*on_event)(struct runner *, struct source *, uint32_t events);
    void *owner;
    int fd; /* -1 once it is closed */
    uint32_t armed; /* the events it is registered for */
};

/* The first member of what has sources. */
struct later {
    struct later *next;
};

/* Frees what begins with this at the end of the loop's turn. */
void free_later(struct runner *r, struct later *what);
void free_what_is_over(struct runner *r);

uint64_t now_ms(void);
uint64_t now_us(void);

/* Asks the loop to come round no later than this. */
void wake_at(struct runner *r, uint64_t when_ms);

void watch(struct runner *r, struct source *s, uint32_t events);
void close_source(struct runner *r, struct source *s);
bool is_open(const struct source *s);

/* Remembers the highest descriptor in use: a new worker closes everything up to it. */
void note_fd(struct runner *r, int fd);

/*
 * Whether channels and workers may use a descriptor of this number; if not, errno is EMFILE. The last few are kept for a host that
 * connects again and for reading /proc.
 */
bool may_use_fd(struct runner *r, int fd);

#endif
