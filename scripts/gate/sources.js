import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { lookThrough } from "../doors.js";
import { Source } from "../executed/touched.js";
import { root } from "../setup/run.js";
import { movedSince } from "./change.js";

/**
 * The source files of a commit and those of the checkout, each read once. `changed` are the ones that differ. A file that has moved since is the same
 * file, by either path.
 */
export class Sources {
  #commit;
  #changed;
  #before;
  #now;
  #texts = new Map();
  #sources = new Map();

  constructor(commit, changed) {
    this.#commit = commit;
    this.#changed = new Set(changed);
    this.#before = movedSince(commit);
    this.#now = new Map([...this.#before].map(([now, before]) => [before, now]));
  }

  /** The path that a file had at the commit. */
  pathBefore(file) {
    return this.#before.get(file) ?? file;
  }

  before(file) {
    const path = this.pathBefore(file);
    return this.#source(path, this.#textBefore(path), "before");
  }

  after(file) {
    const path = this.#now.get(file) ?? file;
    return this.#source(path, textNow(path), "after");
  }

  /** Whether the text of a file at the commit has these characters in it. */
  mentions(file, characters) {
    return this.#textBefore(file)?.includes(characters) ?? false;
  }

  #source(file, text, when) {
    if (text === null) return null;
    const key = `${when} ${file}`;
    if (!this.#sources.has(key))
      this.#sources.set(key, new Source(file, lookThrough(text, join(root, file))));
    return this.#sources.get(key);
  }

  #textBefore(file) {
    if (!this.#texts.has(file))
      this.#texts.set(file, this.#changed.has(file) ? textAt(this.#commit, file) : textNow(file));
    return this.#texts.get(file);
  }
}

/** Null if there is no such file. */
function textNow(file) {
  try {
    return readFileSync(join(root, file), "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return null;
    throw error;
  }
}

function textAt(commit, file) {
  try {
    const options = { cwd: root, encoding: "utf8", maxBuffer: 1 << 26, stdio: ["ignore", "pipe", "ignore"] };
    return execFileSync("git", ["show", `${commit}:${file}`], options);
  } catch {
    return null;
  }
}
