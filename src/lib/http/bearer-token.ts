import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { BrigError } from "../../errors.js";
import { readTextFile } from "../bounded-file.js";

const MAX_TOKEN_BYTES = 4096;

export function newToken(): string {
  return randomBytes(32).toString("hex");
}

/** Error: `usage.invalid`. */
export async function readTokenFile(file: string): Promise<string> {
  const read = await readTextFile(file, MAX_TOKEN_BYTES);
  const token = read.kind === "text" ? read.text.trim() : "";
  if (/^[\x21-\x7e]{16,}$/.test(token)) return token;
  const reason =
    read.kind === "missing"
      ? "does not exist"
      : read.kind === "unreadable"
        ? read.reason
        : "does not hold one word of at least 16 characters";
  throw new BrigError(`the token file ${JSON.stringify(file)} ${reason}`, {
    code: "usage.invalid",
    hint: "write a random token to it, for example with: openssl rand -hex 32",
  });
}

/** Whether the request has `Authorization: Bearer TOKEN`. Takes as long for a wrong token as for a right one. */
export function hasToken({ authorization = "" }: IncomingHttpHeaders, token: string): boolean {
  const given = /^Bearer (.+)$/i.exec(authorization)?.[1];
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return given !== undefined && timingSafeEqual(digest(given), digest(token));
}
