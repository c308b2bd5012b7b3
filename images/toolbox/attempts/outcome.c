#include "attempts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_ERRORS = 8 };

static char text[320];
static int errors[MOST_ERRORS];
static int error_count;
static bool one_was_done;

/* The names of things that are found may be chosen by anybody, but the outcome has to stay one line. */
static void print_line(const char *line) {
    for (; *line; line++) putchar((unsigned char) *line < ' ' || *line == 0x7f ? '?' : *line);
    putchar('\n');
    fflush(stdout);
}

void untried(const char *why) {
    printf("untried: ");
    print_line(why);
    _exit(0);
}

void found(const char *thing) {
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s", used ? " " : "found ", thing);
}

int all_found(void) {
    return text[0] ? SAID : NOTHING;
}

void tried(int result) {
    if (result == DONE) one_was_done = true;
    for (int i = 0; i < error_count; i++)
        if (errors[i] == result) return;
    if (result > 0 && error_count < MOST_ERRORS) errors[error_count++] = result;
}

int all_tried(void) {
    if (one_was_done) return DONE;
    for (int i = 0; i < error_count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s#%d", used ? " " : "", errors[i]);
    }
    return all_found();
}

void print_outcome(int result) {
    if (result == SAID) return print_line(text);
    if (result == DONE) return print_line("done");
    if (result == NOTHING) return print_line("nothing");
    char number[16];
    snprintf(number, sizeof number, "#%d", result);
    print_line(number);
}

int failure(int result) {
    return result < 0 ? errno : 0;
}

int open_and_close(const char *path, int flags) {
    int file = open(path, flags | O_CLOEXEC, 0600);
    if (file < 0) return errno;
    close(file);
    return 0;
}
