import { type GitSetting, parseGitConfig } from "./git-config.js";

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
