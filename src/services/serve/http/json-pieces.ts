const PIECE_LENGTH = 64 * 1024;

/** Whether a value is worth being written in pieces: its JSON may be six times as large as its texts. */
export function isLong(value: unknown): value is object {
  return isObject(value) && Object.values(value).some(isLongText);
}

/** An object's JSON, the long texts in it bit by bit, so that it is never in memory as a whole. */
export function* jsonPieces(value: object): Generator<string> {
  let separator = "{";
  for (const [name, field] of Object.entries(value)) {
    if (field === undefined) continue;
    yield `${separator}${JSON.stringify(name)}:`;
    if (isLongText(field)) yield* textPieces(field);
    else yield JSON.stringify(field);
    separator = ",";
  }
  yield "}";
}

/** A character that is cut in two becomes two escapes, which mean the same. */
function* textPieces(text: string): Generator<string> {
  yield '"';
  for (let at = 0; at < text.length; at += PIECE_LENGTH)
    yield JSON.stringify(text.slice(at, at + PIECE_LENGTH)).slice(1, -1);
  yield '"';
}

function isLongText(field: unknown): field is string {
  return typeof field === "string" && field.length > PIECE_LENGTH;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
