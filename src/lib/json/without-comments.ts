/** Strings, which are kept, or comments, or commas before a closing bracket. */
const PIECES = /"(?:\\.|[^"\\])*"|\/\/[^\n]*|\/\*[^*]*(?:\*(?!\/)[^*]*)*\*\/|,(?=\s*[\]}])/g;

/** JSON with comments and trailing commas as JSON; a text that is neither stays no JSON. */
export function withoutComments(text: string): string {
  const bare = text.replace(PIECES, (piece) => (piece.startsWith('"') || piece === "," ? piece : " "));
  return bare.replace(PIECES, (piece) => (piece === "," ? "" : piece));
}
