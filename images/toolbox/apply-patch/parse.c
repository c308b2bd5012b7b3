/* Reads a patch. */
#include "patch.h"

static const struct text BEGIN = {"*** Begin Patch", 15}, END = {"*** End Patch", 13}, ADD = {"*** Add File: ", 14},
                         DELETE = {"*** Delete File: ", 17}, UPDATE = {"*** Update File: ", 17}, MOVE = {"*** Move to: ", 13},
                         END_OF_FILE = {"*** End of File", 15}, ENVIRONMENT = {"*** Environment ID:", 19}, ANCHOR = {"@@", 2},
                         ANCHORED = {"@@ ", 3};

#define FIRST_LINE TEXT("Invalid patch: The first line of the patch must be '*** Begin Patch'")
#define LAST_LINE TEXT("Invalid patch: The last line of the patch must be '*** End Patch'")

/* `next` is the index of the line to read next, and so the number of the line read last. */
struct reader {
    struct text *lines;
    size_t count, next;
    struct text reason; /* the reason for the first error */
};

/* A line ends with LF, CRLF or even CR CR LF; a last line that nothing ends counts. */
static void split_lines(struct reader *r, struct text text) {
    if (text.length == 0) return;
    for (size_t start = 0, at = 0; at <= text.length; at++) {
        if (at < text.length && text.at[at] != '\n') continue;
        struct text line = {text.at + start, at - start};
        for (int returns = 0; returns < 2 && ends_with(line, TEXT("\r")); returns++) line.length--;
        r->lines = room_for_one(r->lines, r->count, sizeof *r->lines);
        r->lines[r->count++] = line;
        start = at + 1;
    }
}

static struct text last_line(const struct reader *r) {
    return r->count ? r->lines[r->count - 1] : TEXT("");
}

static bool is_enveloped(const struct reader *r) {
    return r->count && same_text(trim(r->lines[0]), BEGIN) && same_text(trim(last_line(r)), END);
}

/* Removes the remains of a shell's heredoc around the patch. */
static void drop_heredoc(struct reader *r) {
    if (is_enveloped(r) || r->count < 4 || !ends_with(last_line(r), TEXT("EOF"))) return;
    struct text first = r->lines[0];
    if (!same_text(first, TEXT("<<EOF")) && !same_text(first, TEXT("<<'EOF'")) && !same_text(first, TEXT("<<\"EOF\""))) return;
    r->lines++;
    r->count -= 2;
}

static bool check_envelope(struct reader *r) {
    if (r->count && !same_text(trim(r->lines[0]), BEGIN)) r->reason = FIRST_LINE;
    else if (r->count < 2 || !same_text(trim(last_line(r)), END)) r->reason = LAST_LINE;
    else r->lines[r->count - 1] = END; /* with its indentation it would be a context line of an update */
    return !r->reason.at;
}

static struct text peek(const struct reader *r) {
    return r->next < r->count ? r->lines[r->next] : END;
}

static struct text take(struct reader *r) {
    struct text line = peek(r);
    r->next++;
    return line;
}

static void refuse_line(struct reader *r, size_t line, struct text reason) {
    if (!r->reason.at) r->reason = CONCAT(TEXT("Invalid patch hunk on line "), text_of_number(line), TEXT(": "), reason);
}

/* Inside an update a header counts only at the start of its line. */
static bool at_update_end(const struct reader *r) {
    struct text line = trim_end(peek(r));
    return same_text(line, END) || starts_with(line, ADD) || starts_with(line, DELETE) || starts_with(line, UPDATE);
}

static void read_environment(struct reader *r) {
    for (bool is_known = false; !r->reason.at && starts_with(trim(peek(r)), ENVIRONMENT); r->next++, is_known = true) {
        if (is_known) r->reason = TEXT("Invalid patch: apply_patch environment_id cannot be specified more than once");
        else if (trim(without_start(trim(peek(r)), ENVIRONMENT.length)).length == 0)
            r->reason = TEXT("Invalid patch: apply_patch environment_id cannot be empty");
    }
}

static void read_added(struct reader *r, struct hunk *hunk) {
    size_t first = r->next, length = 0;
    for (; starts_with(peek(r), TEXT("+")); r->next++) length += peek(r).length;
    struct text *parts = allocate(2 * (r->next - first), sizeof *parts);
    for (size_t i = first; i < r->next; i++) {
        parts[2 * (i - first)] = without_start(r->lines[i], 1);
        parts[2 * (i - first) + 1] = TEXT("\n");
    }
    hunk->added = concat(parts, 2 * (r->next - first));
}

/* An end-of-file marker before any chunk says nothing. */
static struct text read_move(struct reader *r) {
    struct text move_to = NO_TEXT;
    for (;; r->next++) {
        struct text line = trim_end(peek(r));
        if (!move_to.at && starts_with(line, MOVE)) move_to = without_start(line, MOVE.length);
        else if (!same_text(line, END_OF_FILE)) return move_to;
    }
}

static bool change_of(struct text line, struct change *change) {
    char sign = line.length ? line.at[0] : ' ';
    change->kind = sign == '+' ? ADDED : sign == '-' ? REMOVED : CONTEXT;
    change->text = line.length ? without_start(line, 1) : line;
    return sign == ' ' || sign == '+' || sign == '-';
}

static void refuse_chunk(struct reader *r) {
    struct text line = at_update_end(r) ? trim_end(peek(r)) : peek(r);
    bool is_end = same_text(line, END) || same_text(trim_end(line), END_OF_FILE);
    refuse_line(r, r->next + 1,
                is_end ? TEXT("Update hunk does not contain any lines")
                       : CONCAT(TEXT("Unexpected line found in update hunk: '"), line,
                                TEXT("'. Every line should start with ' ' (context line), '+' (added line), or '-' (removed line)")));
}

static void read_chunk(struct reader *r, struct chunk *chunk, bool is_first) {
    struct text first = trim_end(peek(r));
    bool is_anchored = starts_with(first, ANCHORED), has_marker = is_anchored || same_text(first, ANCHOR);
    if (!has_marker && !is_first) {
        refuse_line(r, r->next + 1, CONCAT(TEXT("Expected update hunk to start with a @@ context marker, got: '"), peek(r), TEXT("'")));
        return;
    }
    if (has_marker) r->next++;
    chunk->anchor = is_anchored ? without_start(first, ANCHORED.length) : NO_TEXT;
    for (struct change change; change_of(peek(r), &change); r->next++) {
        chunk->changes = room_for_one(chunk->changes, chunk->count, sizeof *chunk->changes);
        chunk->changes[chunk->count++] = change;
    }
    if (chunk->count == 0) refuse_chunk(r);
    chunk->is_at_end = same_text(trim_end(peek(r)), END_OF_FILE);
    /* The blank lines after the marker belong to no chunk. */
    if (chunk->is_at_end)
        do r->next++;
        while (trim(peek(r)).length == 0);
}

static void read_update(struct reader *r, struct hunk *hunk) {
    size_t header = r->next;
    hunk->move_to = read_move(r);
    while (!r->reason.at && !at_update_end(r)) {
        hunk->chunks = room_for_one(hunk->chunks, hunk->count, sizeof *hunk->chunks);
        hunk->chunks[hunk->count] = (struct chunk){0};
        read_chunk(r, &hunk->chunks[hunk->count], hunk->count == 0);
        hunk->count++;
    }
    if (hunk->count == 0) refuse_line(r, header, CONCAT(TEXT("Update file hunk for path '"), hunk->path, TEXT("' is empty")));
}

static void read_hunk(struct reader *r, struct hunk *hunk) {
    struct text header = trim(take(r));
    if (starts_with(header, ADD)) {
        *hunk = (struct hunk){.kind = ADD_FILE, .path = without_start(header, ADD.length)};
        read_added(r, hunk);
    } else if (starts_with(header, DELETE)) {
        *hunk = (struct hunk){.kind = DELETE_FILE, .path = without_start(header, DELETE.length)};
    } else if (starts_with(header, UPDATE)) {
        *hunk = (struct hunk){.kind = UPDATE_FILE, .path = without_start(header, UPDATE.length)};
        read_update(r, hunk);
    } else {
        refuse_line(r, r->next,
                    CONCAT(TEXT("'"), header, TEXT("' is not a valid hunk header. Valid hunk headers: '"), ADD, TEXT("{path}', '"), DELETE,
                           TEXT("{path}', '"), UPDATE, TEXT("{path}'")));
    }
}

struct text parse_patch(struct text source, struct patch *patch) {
    struct reader r = {.next = 1};
    split_lines(&r, trim(without_mark(source)));
    drop_heredoc(&r);
    if (!check_envelope(&r)) return r.reason;
    read_environment(&r);
    while (!r.reason.at && !same_text(trim(peek(&r)), END)) {
        patch->hunks = room_for_one(patch->hunks, patch->count, sizeof *patch->hunks);
        read_hunk(&r, &patch->hunks[patch->count++]);
    }
    r.next++;
    /* Lines behind an earlier end are not part of any hunk. */
    while (!r.reason.at && r.next + 1 < r.count)
        if (trim(take(&r)).length) r.reason = LAST_LINE;
    return r.reason;
}
