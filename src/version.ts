import { readFileSync } from "node:fs";

/** The version in package.json, e.g. "0.1.0". */
export function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  const version = manifest instanceof Object && "version" in manifest ? manifest.version : undefined;
  return typeof version === "string" ? version : "unknown";
}
