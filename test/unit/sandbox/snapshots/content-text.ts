import type { ContentPiece } from "../../../../src/sandbox/files/file-request.js";

/** The data of a content without its holes, as text. */
export async function contentText(pieces: AsyncIterable<ContentPiece>): Promise<string> {
  const all: Buffer[] = [];
  for await (const { data } of pieces) all.push(data);
  return Buffer.concat(all).toString();
}

/** A content that comes in these pieces, without holes. */
export async function* contentIn(...texts: string[]): AsyncGenerator<ContentPiece> {
  let offset = 0;
  for (const text of [...texts, ""]) {
    const data = Buffer.from(text);
    yield { offset, data };
    offset += data.length;
  }
}
