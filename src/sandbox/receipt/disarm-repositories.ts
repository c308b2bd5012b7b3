import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import { isBrigError } from "../../errors.js";
import { readFile } from "../files/file-reads.js";
import { run } from "../files/file-request.js";
import { listDirectory, writeFile } from "../files/files.js";
import { type GitSetting, parseGitConfig } from "../git/repository-config.js";
import { isAtOrBelow } from "../plan/paths.js";
import type { CommandContext } from "../process/command.js";
import type { Finding } from "./receipt.js";

const CONFIG_MAX_BYTES = 1024 * 1024;
const POINTER_MAX_BYTES = 64 * 1024;
const HOOK_MAX_BYTES = 16 * 1024 * 1024;
/** Git knows about thirty. */
const MAX_HOOKS = 50;

interface Place {
  context: CommandContext;
  /** The directories that the receipt is about. */
  roots: readonly string[];
  signal: AbortSignal;
}

/**
 * Takes away what git would run from repositories that were not there when the session began, whoever made them: a
 * command could write to them. Other settings stay, and the old ones stay beside them under another name; hooks stay,
 * but git does not run one that is not executable. What cannot be changed stays as it is, and is not marked as
 * neutralised. Errors: the signal's reason.
 */
export async function disarmRepositories(findings: readonly Finding[], place: Place): Promise<Finding[]> {
  const changed: string[] = [];
  for (const { path, reasons } of findings)
    if (reasons.includes("repository")) changed.push(...(await disarm(path, place)));
  return findings.map((finding) =>
    changed.some((path) => isAtOrBelow(finding.path, path)) ? { ...finding, isNeutralised: true } : finding,
  );
}

/** Returns the paths that were changed. */
async function disarm(repository: string, place: Place): Promise<string[]> {
  const names = (await listed(repository, place)) ?? [];
  const changed = await disarmDirectory(repository, names, place);
  if (!names.includes("commondir")) return changed;
  const common = await commonDirectory(repository, place);
  if (common === null) return changed;
  return [...changed, ...(await disarmDirectory(common, (await listed(common, place)) ?? [], place))];
}

async function disarmDirectory(directory: string, names: readonly string[], place: Place): Promise<string[]> {
  const changed: string[] = [];
  for (const name of ["config", "config.worktree"])
    if (names.includes(name)) changed.push(...(await disarmConfig(`${directory}/${name}`, place)));
  if (names.includes("hooks")) changed.push(...(await disarmHooks(`${directory}/hooks`, place)));
  return changed;
}

async function commonDirectory(repository: string, place: Place): Promise<string | null> {
  const pointer = await attempt(async () => await read(`${repository}/commondir`, POINTER_MAX_BYTES, place));
  if (pointer === null) return null;
  const directory = resolve(repository, pointer.toString("utf8").replace(/[\r\n]+$/, ""));
  return place.roots.some((root) => isAtOrBelow(directory, root)) ? directory : null;
}

async function disarmConfig(file: string, place: Place): Promise<string[]> {
  const text = await attempt(async () => (await read(file, CONFIG_MAX_BYTES, place)).toString("latin1"));
  // Anything but a small regular file, such as a link, has no settings that can be kept.
  const harmless = text === null ? "" : harmlessConfig(text);
  if (harmless === null || !(await moveAside(file, place))) return [];
  const { context, signal } = place;
  const data = Buffer.from(harmless, "latin1");
  if (text !== null)
    await writeFile(context, { path: file, data, mode: 0o644, refuseSymlinks: true, signal });
  return [file];
}

async function disarmHooks(directory: string, place: Place): Promise<string[]> {
  const names = await listed(directory, place);
  // A link to a directory may be listed, but nothing is reached through it.
  const hooks = names?.filter((name) => !name.endsWith(".sample")) ?? [];
  if (hooks.length > MAX_HOOKS) return (await moveAside(directory, place)) ? [directory] : [];
  const changed: string[] = [];
  for (const name of hooks) {
    const hook = `${directory}/${name}`;
    if ((await takeExecution(hook, place)) || (await moveAside(hook, place))) changed.push(hook);
  }
  return changed;
}

/** False for what is no regular file, or is too large. */
async function takeExecution(file: string, place: Place): Promise<boolean> {
  const { context, signal } = place;
  const done = await attempt(async () => {
    const data = await read(file, HOOK_MAX_BYTES, place);
    // A file that is there keeps its mode.
    await run(context, { operation: "remove", path: file, refuseSymlinks: true, signal });
    await writeFile(context, { path: file, data, mode: 0o644, refuseSymlinks: true, signal });
    return true;
  });
  return done ?? false;
}

/** False if there is nothing, or nothing that can be moved. */
async function moveAside(path: string, { context, signal }: Place): Promise<boolean> {
  const second = `${path}.from-sandbox-${randomUUID().slice(0, 8)}`;
  const moved = await attempt(
    async () => await run(context, { operation: "rename", path, second, refuseSymlinks: true, signal }),
  );
  return moved !== null;
}

async function read(path: string, maxBytes: number, { context, signal }: Place): Promise<Buffer> {
  return await readFile(context, path, { maxBytes, refuseSymlinks: true, signal });
}

/** The names in a directory; null if there is none that can be listed. */
async function listed(path: string, { context, signal }: Place): Promise<string[] | null> {
  const entries = await attempt(async () => await listDirectory(context, path, { signal }));
  return entries?.map(({ name }) => name) ?? null;
}

/** Null if the file system refuses it. */
async function attempt<T>(act: () => Promise<T>): Promise<T | null> {
  try {
    return await act();
  } catch (error) {
    if (isBrigError(error) && error.code.startsWith("file.")) return null;
    throw error;
  }
}

/**
 * Settings that run no program and lead git to no other files, by their names in lower case. `core.worktree` is none: git would write what a
 * command has committed wherever it leads, also by a link. Submodules do without it.
 */
const HARMLESS: readonly RegExp[] = [
  /^core\.(?:abbrev|autocrlf|bare|bigfilethreshold|compression|eol|filemode|ignorecase|logallrefupdates|precomposeunicode|protecthfs|protectntfs|quotepath|repositoryformatversion|safecrlf|sparsecheckout|sparsecheckoutcone|symlinks)$/,
  /^extensions\.(?:compatobjectformat|objectformat|partialclone|preciousobjects|refstorage|relativeworktrees)$/,
  /^(?:advice|branch|color|column|fetch|gc|init|pull|push|rebase|rerere|status|user)\.(?!(?:.*\.)?(?:templatedir|recentobjectshook)$)/,
  /^remote\..*\.(?:fetch|mirror|partialclonefilter|promisor|prune|prunetags|push|tagopt)$/,
  /^submodule\.(?:.*\.)?(?:active|branch|ignore|recurse)$/,
];
/** A URL can name a program as well: `ext::sh -c …`, or an option of one. */
const HARMLESS_URL = /^(?:branch\..*\.(?:pushremote|remote)|remote\..*\.(?:pushurl|url)|submodule\..*\.url)$/;

/**
 * The text of a configuration file with nothing in it but settings that can do no harm. Null if there is nothing else
 * in it already.
 */
export function harmlessConfig(text: string): string | null {
  const settings = parseGitConfig(text);
  const harmless = settings.filter(isHarmless);
  return harmless.length === settings.length ? null : harmless.map(written).join("");
}

function isHarmless({ name, value }: GitSetting): boolean {
  if (HARMLESS_URL.test(name)) return !/^-|^[^/]*::/.test(value ?? "");
  return HARMLESS.some((pattern) => pattern.test(name));
}

function written({ name, value }: GitSetting): string {
  const [first, last] = [name.indexOf("."), name.lastIndexOf(".")];
  const [section, key] = [name.slice(0, first), name.slice(last + 1)];
  const subsection = first === last ? "" : ` "${name.slice(first + 1, last).replace(/["\\]/g, "\\$&")}"`;
  return `[${section}${subsection}]\n\t${key}${value === null ? "" : ` = ${quoted(value)}`}\n`;
}

function quoted(value: string): string {
  const escaped = value
    .replace(/["\\]/g, "\\$&")
    .replace(/\n/g, "\\n")
    .replace(/\t/g, "\\t")
    .replaceAll("\b", "\\b");
  return `"${escaped}"`;
}
