/** The value of a JSON text; undefined for any other text. For where the parser's complaint helps nobody, or would quote a secret. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
