/*
 * apply_patch, also called applypatch: applies a patch in the Begin/End format, from its argument or its standard input, as the user that
 * runs it. Exit codes: 0 if it was applied, 1 if not, 2 for wrong use.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "patch.h"

/* A file as it is at some point of the patch. */
struct state {
    enum { MISSING, READABLE, UNREADABLE } kind;
    struct text text; /* or the reason why it cannot be read */
    mode_t mode;
    bool has_twin; /* the patch names the file in another way too */
    dev_t device;
    ino_t inode;
};

/* A change of one file. */
struct step {
    const struct hunk *hunk;
    char *path, *from; /* `from` is the old path of a moved file, otherwise the same path */
    struct text text;
    mode_t mode;
    bool is_made_late; /* an earlier step may change the file under another name */
};

struct plan {
    mode_t new_mode; /* of a new file */
    struct numbers paths;
    struct state *tree; /* by the number of the path */
    struct step *steps;
};

/* ---- paths ----------------------------------------------------------------------------------------------------- */

/* The absolute path, without `.`, `..` and double slashes. Links are not resolved. */
static char *resolve(struct text directory, struct text written) {
    struct text whole = starts_with(written, TEXT("/")) ? written : CONCAT(directory, TEXT("/"), written);
    char *path = allocate(whole.length + 2, 1);
    size_t used = 0;
    for (size_t at = 0, end; at < whole.length; at = end + 1) {
        const char *slash = memchr(whole.at + at, '/', whole.length - at);
        end = slash ? (size_t)(slash - whole.at) : whole.length;
        struct text name = {whole.at + at, end - at};
        if (name.length == 0 || same_text(name, TEXT("."))) continue;
        if (same_text(name, TEXT(".."))) {
            while (used && path[--used] != '/') continue;
            continue;
        }
        path[used++] = '/';
        memcpy(path + used, name.at, name.length);
        used += name.length;
    }
    if (used == 0) path[used++] = '/';
    path[used] = 0;
    return path;
}

static bool has_nul(struct text text) {
    return text.length && memchr(text.at, 0, text.length);
}

/* ---- planning -------------------------------------------------------------------------------------------------- */

static struct state read_state(const char *path) {
    struct state state = {.kind = UNREADABLE};
    struct stat st;
    int failure = read_file(path, &state.text, &st);
    if (failure == ENOENT) return (struct state){.kind = MISSING};
    if (failure) {
        state.text = failure_text(path, failure);
        return state;
    }
    struct text fault = utf8_fault(state.text);
    state.device = st.st_dev;
    state.inode = st.st_ino;
    state.mode = st.st_mode & 0777;
    if (fault.at) state.text = fault;
    else state.kind = READABLE;
    return state;
}

static size_t number_of_path(struct plan *plan, const char *path) {
    size_t known = plan->paths.used, number = number_of(&plan->paths, text_of(path));
    if (number < known) return number;
    plan->tree = room_for_one(plan->tree, known, sizeof *plan->tree);
    plan->tree[number] = (struct state){.kind = MISSING};
    return number;
}

static struct state *state_of(struct plan *plan, const char *path) {
    size_t number = number_of_path(plan, path); /* which may move the tree */
    return &plan->tree[number];
}

/* Reads every file whose text the patch needs. */
static void read_tree(struct plan *plan, const struct patch *patch) {
    for (size_t i = 0; i < patch->count; i++) {
        if (patch->hunks[i].kind == ADD_FILE || has_nul(patch->hunks[i].path)) continue;
        size_t known = plan->paths.used, number = number_of_path(plan, plan->steps[i].from);
        if (number == known) plan->tree[number] = read_state(plan->steps[i].from);
    }
}

/* Marks different names of the same file. */
static void mark_twins(struct plan *plan) {
    struct numbers files = {0};
    size_t *first = allocate(plan->paths.used, sizeof *first);
    for (size_t i = 0; i < plan->paths.used; i++) {
        struct state *state = &plan->tree[i];
        if (state->kind != READABLE) continue;
        struct text identity = {(const char *)&state->device, sizeof state->device};
        size_t known = files.used, number = number_of(&files, CONCAT(identity, ((struct text){(const char *)&state->inode, sizeof state->inode})));
        if (number == known) first[number] = i;
        else state->has_twin = plan->tree[first[number]].has_twin = true;
    }
}

static struct text reason_of(const struct state *state, const char *path) {
    return state->kind == MISSING ? failure_text(path, ENOENT) : state->text;
}

static struct text plan_update(struct plan *plan, struct step *step) {
    struct state state = *state_of(plan, step->from);
    if (state.kind != READABLE)
        return CONCAT(TEXT("Failed to read file to update "), text_of(step->from), TEXT(": "), reason_of(&state, step->from));
    struct text reason = edit_text(state.text, step->hunk, text_of(step->from), &step->text);
    if (reason.at) return reason;
    bool is_move = strcmp(step->path, step->from) != 0;
    step->mode = state.mode;
    step->is_made_late = state.has_twin;
    state.text = step->text;
    if (is_move) *state_of(plan, step->from) = (struct state){.kind = MISSING};
    *state_of(plan, step->path) = state;
    return NO_TEXT;
}

static struct text plan_step(struct plan *plan, struct step *step) {
    const struct hunk *hunk = step->hunk;
    if (has_nul(hunk->path)) return CONCAT(TEXT("'"), hunk->path, TEXT("' is invalid on 'linux'"));
    if (hunk->move_to.at && has_nul(hunk->move_to)) return CONCAT(TEXT("'"), hunk->move_to, TEXT("' is invalid on 'linux'"));
    if (hunk->kind == UPDATE_FILE) return plan_update(plan, step);
    struct state *state = state_of(plan, step->path);
    if (hunk->kind == ADD_FILE) {
        step->text = hunk->added;
        step->mode = plan->new_mode;
        *state = (struct state){.kind = READABLE, .text = hunk->added, .mode = plan->new_mode};
        return NO_TEXT;
    }
    if (state->kind != READABLE) return CONCAT(TEXT("Failed to read "), text_of(step->path), TEXT(": "), reason_of(state, step->path));
    *state = (struct state){.kind = MISSING};
    return NO_TEXT;
}

static struct text make_plan(struct plan *plan, const struct patch *patch, struct text directory) {
    plan->steps = allocate(patch->count, sizeof *plan->steps);
    for (size_t i = 0; i < patch->count; i++) {
        const struct hunk *hunk = &patch->hunks[i];
        char *from = resolve(directory, hunk->path);
        plan->steps[i] = (struct step){.hunk = hunk, .from = from, .path = hunk->move_to.at ? resolve(directory, hunk->move_to) : from};
    }
    read_tree(plan, patch);
    mark_twins(plan);
    for (size_t i = 0; i < patch->count; i++) {
        struct text reason = plan_step(plan, &plan->steps[i]);
        if (reason.at) return reason;
    }
    return NO_TEXT;
}

/* ---- changing -------------------------------------------------------------------------------------------------- */

static struct text failed(const char *what, const char *path, int failure, const char *of) {
    return failure ? CONCAT(text_of(what), text_of(path), TEXT(": "), failure_text(of, failure)) : NO_TEXT;
}

static struct text write_text(const struct step *step) {
    int failure = replace_file(step->path, step->text, step->mode);
    if (failure != ENOENT) return failed("Failed to write file ", step->path, failure, step->path);
    struct text path = text_of(step->path);
    while (path.length > 1 && !ends_with(path, TEXT("/"))) path.length--;
    if (path.length > 1) path.length--;
    char *parent = string_of(path);
    failure = make_directories(parent);
    if (failure) return failed("Failed to create parent directories for ", step->path, failure, parent);
    return failed("Failed to write file ", step->path, replace_file(step->path, step->text, step->mode), step->path);
}

static struct text edit_now(struct step *step) {
    struct state now = read_state(step->from);
    if (now.kind != READABLE)
        return CONCAT(TEXT("Failed to read file to update "), text_of(step->from), TEXT(": "), reason_of(&now, step->from));
    return edit_text(now.text, step->hunk, text_of(step->from), &step->text);
}

/* Removes the old name, unless the new one leads to the same file, perhaps through a link: the file would be lost. */
static struct text remove_original(const struct step *step) {
    struct stat original, moved;
    int failure = lstat(step->from, &original) != 0 || stat(step->path, &moved) != 0 ? errno : 0;
    if (!failure && original.st_dev == moved.st_dev && original.st_ino == moved.st_ino) return NO_TEXT;
    if (!failure && unlink(step->from) != 0) failure = errno;
    return failed("Failed to remove original ", step->from, failure, step->from);
}

static struct text take_step(struct step *step) {
    if (step->hunk->kind == DELETE_FILE)
        return failed("Failed to delete file ", step->path, unlink(step->path) == 0 ? 0 : errno, step->path);
    struct text reason = step->is_made_late ? edit_now(step) : NO_TEXT;
    if (!reason.at) reason = write_text(step);
    return reason.at || strcmp(step->path, step->from) == 0 ? reason : remove_original(step);
}

/*
 * Returns NO_TEXT, or the failure. Relative paths start at `directory`. All hunks are checked in order before the first file is changed,
 * and if one does not fit, no file is. If a change fails after that, the changes before it stay.
 */
static struct text apply_patch(const struct patch *patch, struct text directory) {
    mode_t mask = umask(0);
    umask(mask);
    struct plan plan = {.new_mode = 0644 & ~mask};
    struct text reason = make_plan(&plan, patch, directory);
    for (size_t i = 0; !reason.at && i < patch->count; i++) reason = take_step(&plan.steps[i]);
    return reason;
}

/* ---- the program ----------------------------------------------------------------------------------------------- */

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
