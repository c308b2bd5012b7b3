import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "./package-root.js";

/** The version in package.json, e.g. "0.1.0". */
export function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8"));
  const version = manifest instanceof Object && "version" in manifest ? manifest.version : undefined;
  return typeof version === "string" ? version : "unknown";
}

export function nodeVersion(): string {
  return process.versions.node;
}
