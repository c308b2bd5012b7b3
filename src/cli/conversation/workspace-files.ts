import { setImmediate as nextRound } from "node:timers/promises";
import { isBrigError } from "../../errors.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import type { ToolSandbox } from "../../tools/index.js";
import { quotedPath } from "./input/draft.js";
import type { Choice, Offer } from "./input/menu.js";

const MAX_FILES = 50_000;
/** Longer paths are left out. */
const MAX_PATH_CHARS = 1024;
const MAX_ALL_CHARS = 8 * 1024 * 1024;
const FOUND = 50;
/** So many files are searched at a time, so that keys are read in between. */
const SEARCHED_AT_ONCE = 1000;

interface FilesPlace {
  sandbox: Promise<ToolSandbox>;
  /** The directory whose files are listed. */
  cwd: string;
}

/** What is found in more and more of the files. */
type FileSearch = (typed: string) => Generator<Offer>;

/** The files of the workspace, which are listed inside the sandbox when somebody first asks for one. */
export class WorkspaceFiles {
  readonly #place: () => FilesPlace;
  readonly #stop = new AbortController();
  #search: FileSearch | null = null;
  #isFresh = false;
  #listing: Promise<void> | null = null;
  /** Counts what was asked for: an earlier search ends when there is another one. */
  #asked = 0;

  constructor(place: () => FilesPlace) {
    this.#place = place;
  }

  /** Shows at once what is known, and again when all files are searched, and when they were listed, if they must be. */
  find(typed: string, show: (offer: Offer) => void): void {
    const asked = ++this.#asked;
    const search = () => void this.#show(typed, { asked, show });
    if (this.#search === null) show({ choices: [], note: "listing the files of the workspace …" });
    else search();
    if (this.#isFresh && this.#listing === null) return;
    this.#listing ??= this.#list().finally(() => {
      this.#listing = null;
    });
    void this.#listing.then(() => asked === this.#asked && search());
  }

  /** Never rejects. */
  async #show(typed: string, { asked, show }: { asked: number; show(offer: Offer): void }): Promise<void> {
    const search = this.#search;
    let first: Offer | null = null;
    let last: Offer | null = null;
    for (last of search?.(typed) ?? []) {
      if (first === null) show(last);
      else await nextRound();
      first ??= last;
      if (asked !== this.#asked || search !== this.#search) return;
    }
    if (last !== null && last !== first) show(last);
  }

  /** The next search lists the files again. */
  refresh(): void {
    this.#isFresh = false;
  }

  close(): void {
    this.#stop.abort(new Error("the session ends"));
  }

  /** Never rejects. */
  async #list(): Promise<void> {
    // What changes while the files are listed may be missing.
    this.#isFresh = true;
    this.#search = await listedFiles(this.#place(), this.#stop.signal).catch((error: unknown) => {
      const reason = isBrigError(error) ? error.message : String(error);
      const note = neutraliseLine(`the files cannot be listed: ${reason}`);
      return function* () {
        yield { choices: [], note };
      };
    });
  }
}

interface WorkspaceFile {
  name: string;
  path: string;
  depth: number;
}

async function listedFiles({ sandbox, cwd }: FilesPlace, signal: AbortSignal): Promise<FileSearch> {
  const [{ listFiles }, { go, snapshot }] = await Promise.all([
    import("../../tools/index.js"),
    import("fuzzysort"),
  ]);
  const files: WorkspaceFile[] = [];
  let chars = 0;
  let isCut = false;
  const needs = { sandbox: () => sandbox, environment: {} };
  await listFiles(needs, {
    directory: cwd,
    signal,
    onPath(path) {
      // No message can name such a file on one line.
      if (path.length > MAX_PATH_CHARS || /\p{Cc}/u.test(path)) return;
      isCut ||= files.length >= MAX_FILES || chars > MAX_ALL_CHARS;
      if (isCut) return;
      chars += path.length;
      const names = path.split("/");
      files.push({ name: names.at(-1) ?? path, path, depth: names.length });
    },
  });
  files.sort(byDepth);
  const searchable = (some: WorkspaceFile[]) => snapshot(some, { keys: ["name", "path"] });
  const parts: ReturnType<typeof searchable>[] = [];
  for (let at = 0; at < files.length; at += SEARCHED_AT_ONCE)
    parts.push(searchable(files.slice(at, at + SEARCHED_AT_ONCE)));
  const note = isCut ? `only ${files.length} of the files are searched` : null;
  return function* (typed) {
    if (typed === "") return yield offerOf(files.slice(0, FOUND), { note, isWhole: true });
    let found: { readonly obj: WorkspaceFile; readonly score: number }[] = [];
    for (const [index, part] of parts.entries()) {
      const more = go(typed, part, { limit: FOUND, threshold: 0, scoreFn: fileScore });
      found = [...found, ...more].sort((one, other) => other.score - one.score).slice(0, FOUND);
      const isWhole = index === parts.length - 1;
      yield offerOf(
        found.map(({ obj }) => obj),
        { note, isWhole },
      );
    }
    if (parts.length === 0) yield offerOf([], { note, isWhole: true });
  };
}

function offerOf(
  files: readonly WorkspaceFile[],
  { note, isWhole }: { note: string | null; isWhole: boolean },
): Offer {
  if (files.length === 0) return { choices: [], note: isWhole ? "no file is found" : "searching …" };
  return { choices: files.map(fileChoice), note };
}

/** A match in the name of a file counts more than one in its directories. */
function fileScore([name, path]: ReadonlyArray<{ readonly score: number }>): number {
  return name !== undefined && name.score > 0 ? name.score + 1 : (path?.score ?? 0);
}

/** Files of the top directory come first. */
function byDepth(one: WorkspaceFile, other: WorkspaceFile): number {
  return one.depth - other.depth || (one.path < other.path ? -1 : 1);
}

function fileChoice({ path }: WorkspaceFile): Choice {
  return { text: `${quotedPath(path)} `, label: neutraliseLine(path), summary: "", isWhole: false };
}
