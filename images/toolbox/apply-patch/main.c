/*
 * apply_patch, also called applypatch: applies a patch in the Begin/End format, from its argument or its standard input, as the user that
 * runs it. Exit codes: 0 if it was applied, 1 if not, 2 for wrong use.
 */
#include <stdio.h>
#include <unistd.h>

#include "apply.h"
#include "files.h"

static void say(FILE *stream, struct text text) {
    fwrite(text.at, 1, text.length, stream);
}

static int refuse(int code, struct text reason) {
    say(stderr, reason);
    say(stderr, TEXT("\n"));
    return code;
}

/* Lists additions first, then updates, then deletions, each in the order of the patch. */
static int summarise(const struct patch *patch) {
    static const struct text letters[] = {[ADD_FILE] = {"A ", 2}, [UPDATE_FILE] = {"M ", 2}, [DELETE_FILE] = {"D ", 2}};
    static const enum hunk_kind order[] = {ADD_FILE, UPDATE_FILE, DELETE_FILE};
    say(stdout, TEXT("Success. Updated the following files:\n"));
    for (size_t kind = 0; kind < 3; kind++)
        for (size_t i = 0; i < patch->count; i++) {
            const struct hunk *hunk = &patch->hunks[i];
            if (hunk->kind != order[kind]) continue;
            say(stdout, letters[hunk->kind]);
            say(stdout, hunk->move_to.at ? hunk->move_to : hunk->path);
            say(stdout, TEXT("\n"));
        }
    return fflush(stdout) == 0 ? 0 : 1;
}

static int apply(struct text source) {
    struct patch patch = {0};
    struct text reason = parse_patch(source, &patch);
    if (reason.at) return refuse(1, reason);
    if (patch.count == 0) return refuse(1, TEXT("No files were modified."));
    char *directory = getcwd(NULL, 0);
    if (!directory) return refuse(1, TEXT("Error: the current directory cannot be told."));
    reason = apply_patch(&patch, text_of(directory));
    return reason.at ? refuse(1, reason) : summarise(&patch);
}

static int apply_input(void) {
    struct text source;
    int failure = read_descriptor(STDIN_FILENO, MAX_FILE_BYTES, &source);
    if (failure) return refuse(1, CONCAT(TEXT("Error: Failed to read PATCH from stdin.\n"), failure_text("-", failure)));
    if (source.length == 0) return refuse(2, TEXT("Usage: apply_patch 'PATCH'\n       echo 'PATCH' | apply_patch"));
    if (utf8_fault(source).at) return refuse(1, TEXT("Error: Failed to read PATCH from stdin.\nstream did not contain valid UTF-8"));
    return apply(source);
}

int main(int argc, char **argv) {
    if (argc > 2) return refuse(2, TEXT("Error: apply_patch accepts exactly one argument."));
    if (argc < 2) return apply_input();
    struct text source = text_of(argv[1]);
    if (utf8_fault(source).at) return refuse(1, TEXT("Error: apply_patch requires a UTF-8 PATCH argument."));
    return apply(source);
}
