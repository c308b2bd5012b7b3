/** One setting of a git configuration file. */
export interface GitSetting {
  /** `section.subsection.key`, with section and key in lower case. */
  name: string;
  value: string | null;
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", b: "\b" };

/** Parses a file as git-config(1) describes it. Skips malformed parts to find all settings. */
export function parseGitConfig(text: string): GitSetting[] {
  const settings: GitSetting[] = [];
  let section = "";
  let rest = text.replace(/^\uFEFF/, "");
  while (rest !== "") {
    rest = rest.replace(/^\s+/, "");
    const header = /^\[([-.0-9A-Za-z]+)(?:[ \t]+"((?:[^"\\\n]|\\.)*)")?[ \t]*\]/.exec(rest);
    const key = /^([A-Za-z][-0-9A-Za-z]*)[ \t]*(=?)/.exec(rest);
    if (header !== null) {
      section = sectionName(header[1] ?? "", header[2]);
      rest = rest.slice(header[0].length);
    } else if (key !== null && !/^[#;]/.test(rest)) {
      const hasValue = key[2] === "=";
      const { value, length } = hasValue ? readValue(rest, key[0].length) : { value: null, length: 0 };
      settings.push({ name: `${section}.${(key[1] ?? "").toLowerCase()}`, value });
      rest = hasValue ? rest.slice(length) : nextLine(rest);
    } else {
      rest = nextLine(rest);
    }
  }
  return settings;
}

function sectionName(name: string, subsection: string | undefined): string {
  if (subsection === undefined) return name.toLowerCase();
  return `${name.toLowerCase()}.${subsection.replace(/\\(.)/g, "$1")}`;
}

function nextLine(text: string): string {
  const end = text.indexOf("\n");
  return end < 0 ? "" : text.slice(end + 1);
}

/** Reads from `start` to the end of the line; a backslash at its end continues it on the next line. */
function readValue(text: string, start: number): { value: string; length: number } {
  const first = start + (/^[ \t]*/.exec(text.slice(start))?.[0].length ?? 0);
  let value = "";
  /** Spaces are kept only if something follows them. */
  let spaces = "";
  let isQuoted = false;
  let isComment = false;
  let at = first;
  const add = (piece: string) => {
    value += spaces + piece;
    spaces = "";
  };
  for (; at < text.length; at++) {
    const character = text[at] ?? "";
    if (character === "\n") break;
    if (isComment || character === "\r") continue;
    if (character === "\\") {
      at += text[at + 1] === "\r" && text[at + 2] === "\n" ? 2 : 1;
      const escaped = text[at] ?? "";
      if (escaped !== "\n") add(ESCAPES[escaped] ?? escaped);
    } else if (character === '"') {
      isQuoted = !isQuoted;
      add("");
    } else if (!isQuoted && (character === "#" || character === ";")) isComment = true;
    else if (!isQuoted && (character === " " || character === "\t")) spaces += character;
    else add(character);
  }
  return { value, length: at };
}
