/*
 * Declarations that the attempts share. Each attempt runs in a process of its own, so it may leave memory and descriptors behind, and use
 * static variables.
 */
#ifndef ATTEMPTS_H
#define ATTEMPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* An attempt returns DONE when it succeeded, the number of an error when it was refused, or one of the others. */
enum { DONE = 0, NOTHING = -1, SAID = -2 };

struct attempt {
    const char *name;
    int (*run)(void);
    /* The attempt has to wait for an answer that may not come, so it runs beside the others. */
    bool waits;
};

extern const struct attempt authority_attempts[], kernel_attempts[], file_attempts[], scratch_attempts[], network_attempts[];

/* given.c: takes the arguments NAME=VALUE. Several with the same name are a list. */
void give(int argc, char **argv);
/* The value number `at` of that name, or NULL behind the last. */
const char *given(const char *name, int at);
/* The first value; the attempt is not made without it. */
const char *need(const char *name);
long given_number(const char *name);

/* outcome.c: the outcome of an attempt. */
/* Ends the attempt, because it cannot be made here. */
_Noreturn void untried(const char *why);
/* Reports one of the things that should not have been found. */
void found(const char *thing);
/* NOTHING, or SAID with what was found. */
int all_found(void);
/* These sum up several tries: DONE if one succeeded, otherwise all their errors. */
void tried(int result);
int all_tried(void);
/* Prints the outcome of this attempt, for its result. */
void print_outcome(int result);

/* 0 or errno */
int failure(int result);
int open_and_close(const char *path, int flags);

/* mounts.c */
struct mount_point {
    char path[4096];
    char type[64];
    bool is_shared, is_writable;
};
void each_mount(void (*visit)(const struct mount_point *));

/* prepare.c: makes everything that the attempts need to succeed, in a container without protection. Returns the exit status, 0 or 1. */
int prepare(const char *workspace);

#endif
