/* A condition that a test needs. The first one that does not hold ends the run. */
#ifndef BRIG_UNIT_REQUIRE_H
#define BRIG_UNIT_REQUIRE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                                        \
    do {                                                                                          \
        if (!(condition)) {                                                                       \
            printf("failed: %s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);      \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

/* Runs a test, which ends the program if it fails, and says that it has passed. */
#define RUN(test)                 \
    do {                          \
        test();                   \
        printf("ok %s\n", #test); \
    } while (0)

#endif
