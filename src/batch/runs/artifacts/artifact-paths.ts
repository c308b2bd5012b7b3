import { basename, posix } from "node:path";
import type { TaskArtifact } from "../../tasks/task.js";

/** Directory in which an agent may always leave files for the verifier. */
const PUBLISH_DIRECTORY = "/logs/artifacts";

/** Directories of the verifier and of the kernel, which artifacts never overwrite. */
const RESERVED = ["/logs/verifier", "/tests", "/solution", "/proc", "/sys", "/dev", "/.brig"];

/** One declared file or directory, with absolute paths. */
export interface DeclaredArtifact {
  source: string;
  /** Path below the folder of the artifacts, with slashes. */
  destination: string;
  excludes(relative: string): boolean;
  /** Whether its absence is a finding. */
  isExpected: boolean;
}

/** The declared artifacts and the directory that is always copied, each with a place of its own on the host. */
export function declaredArtifacts(artifacts: readonly TaskArtifact[], cwd: string): DeclaredArtifact[] {
  const taken = new Set<string>();
  const always = { source: PUBLISH_DIRECTORY, destination: "published", exclude: [] };
  return [always, ...artifacts].map((artifact, index) => {
    const source = posix.resolve(cwd, artifact.source);
    const wanted = artifact.destination ?? (basename(source) || "root");
    const isFree = splitName(wanted) !== null && !taken.has(wanted.split("/")[0] ?? "");
    const destination = isFree ? wanted : `artifact-${index}`;
    taken.add(destination.split("/")[0] ?? "");
    return { source, destination, excludes: excluder(artifact.exclude), isExpected: index > 0 };
  });
}

/** Paths of the artifacts in the container. */
export function artifactSources(artifacts: readonly TaskArtifact[], cwd: string): string[] {
  return declaredArtifacts(artifacts, cwd).flatMap(({ source }) => (isReserved(source) ? [] : [source]));
}

export function isReserved(path: string): boolean {
  return path === "/" || RESERVED.some((root) => path === root || path.startsWith(`${root}/`));
}

/** The names of a relative path; null for one that has no safe counterpart on the host. */
export function splitName(path: string): string[] | null {
  const names = path.replace(/\/$/, "").split("/");
  return names.length <= MAX_DEPTH && names.every(isPlainName) ? names : null;
}

const MAX_DEPTH = 64;
const MAX_NAME_BYTES = 255;

/** Control characters would reach terminals; U+FFFD stands for bytes that are no text, so two names could fall together. */
function isPlainName(name: string): boolean {
  if (name === "" || name === "." || name === ".." || Buffer.byteLength(name) > MAX_NAME_BYTES) return false;
  return !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\\\uFFFD]/u.test(name);
}

/** Matches like `tar --exclude`: a pattern without a slash is for names at any depth, and everything below a match is left out, too. */
function excluder(patterns: readonly string[]): (relative: string) => boolean {
  const matchers = patterns.map((pattern) => globMatcher(pattern));
  return (relative) => matchers.some((matches) => matches(relative));
}

function globMatcher(pattern: string): (relative: string) => boolean {
  const clean = pattern.replace(/^\.?\//, "").replace(/\/$/, "");
  const body = clean
    .split(/(\*\*\/|\*\*|\*|\?)/)
    .map((piece) => globPieces[piece] ?? piece.replace(/[.+^${}()|[\]\\]/g, "\\$&"))
    .join("");
  const start = clean.includes("/") ? "^" : "(?:^|/)";
  const expression = new RegExp(`${start}${body}(?:/|$)`, "u");
  return (relative) => expression.test(relative);
}

const globPieces: Readonly<Record<string, string>> = {
  "**/": "(?:[^/]+/)*",
  "**": ".*",
  "*": "[^/]*",
  "?": "[^/]",
};
