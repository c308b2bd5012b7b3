import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Source } from "../executed/touched.js";
import { root } from "../setup/run.js";

/** The source files of a commit and those of the checkout, each read once. `changed` are the ones that differ. */
export class Sources {
  #commit;
  #changed;
  #texts = new Map();
  #sources = new Map();

  constructor(commit, changed) {
    this.#commit = commit;
    this.#changed = new Set(changed);
  }

  before(file) {
    return this.#source(file, this.#textBefore(file), "before");
  }

  after(file) {
    return this.#source(file, textNow(file), "after");
  }

  /** Whether the text of a file at the commit has these characters in it. */
  mentions(file, characters) {
    return this.#textBefore(file)?.includes(characters) ?? false;
  }

  #source(file, text, when) {
    if (text === null) return null;
    const key = `${when} ${file}`;
    if (!this.#sources.has(key)) this.#sources.set(key, new Source(file, text));
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
