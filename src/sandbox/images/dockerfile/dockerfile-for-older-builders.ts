import { parseJson } from "../../../lib/json/parse-json.js";
import { emptyLines, type Heredoc, type Instruction, readInstructions } from "./dockerfile.js";

/** A Dockerfile that says the same to builders before Docker 23, and the files that it copies or runs. */
export interface OlderDockerfile {
  text: string;
  /** Each file by its path in the build context. */
  files: ReadonlyMap<string, AddedFile>;
}

interface AddedFile {
  mode: number;
  content: Buffer;
}

/**
 * Writes heredocs as files or as arguments, and leaves out `--link`, which changes nothing but how layers are kept. The numbers of
 * lines stay the same. Variables in a heredoc of COPY or ADD stay as they are.
 *
 * @param contextPaths - What the build context has already, which the added files must neither replace nor lie below.
 */
export function forOlderBuilders(text: string, contextPaths: readonly string[]): OlderDockerfile {
  const directory = unusedName(".brig-heredocs", contextPaths);
  const lines = text.split("\n");
  const files = new Map<string, AddedFile>();
  let shell: readonly string[] = usualShell;
  const shellOfStage = new Map<string, readonly string[]>();
  let stage = "";
  for (const instruction of readInstructions(lines)) {
    const { name, text: given, firstLine, lastLine } = instruction;
    if (name === "FROM") {
      const [, base = "", as = ""] = /(?:^|\s)((?!--)\S+)(?:\s+as\s+(\S+))?\s*$/i.exec(given) ?? [];
      shell = shellOfStage.get(base.toLowerCase()) ?? usualShell;
      stage = as.toLowerCase();
      shellOfStage.set(stage, shell);
    }
    if (name === "SHELL") {
      shell = readShell(given) ?? shell;
      shellOfStage.set(stage, shell);
    }
    const changed = inOldWords(instruction, { shell, files, directory });
    if (changed !== given)
      lines.splice(
        firstLine,
        lastLine - firstLine + 1,
        `${name} ${changed}`,
        ...emptyLines(lastLine - firstLine),
      );
  }
  return { text: lines.join("\n"), files };
}

const usualShell = ["/bin/sh", "-c"];

/** The name itself or, if something at the top of the build context has it, the name with the first number that is free. */
function unusedName(name: string, contextPaths: readonly string[]): string {
  const used = new Set(contextPaths.map((path) => path.split("/", 1)[0]));
  let unused = name;
  for (let number = 2; used.has(unused); number++) unused = `${name}-${number}`;
  return unused;
}

interface Surroundings {
  shell: readonly string[];
  files: Map<string, AddedFile>;
  /** Where added files are in the build context. */
  directory: string;
}

function inOldWords(instruction: Instruction, { shell, files, directory }: Surroundings): string {
  const { name, text, heredocs, firstLine } = instruction;
  const addFile = ({ name: file, content }: Heredoc, mode: number) => {
    const path = `${directory}/${firstLine + 1}/${file}`;
    files.set(path, { mode, content: Buffer.from(content) });
    return path;
  };
  if (name === "RUN" && heredocs.length > 0) {
    const [, flags = "", command = ""] = /^((?:--\S+\s+)*)(.*)$/s.exec(text) ?? [];
    const [only] = heredocs;
    const isScript = only !== undefined && heredocs.length === 1 && command === only.word;
    if (isScript && only.content.startsWith("#!"))
      return `${flags}--mount=type=bind,source=${addFile(only, 0o755)},target=/dev/pipes/${only.name} ["/dev/pipes/${only.name}"]`;
    const script = isScript
      ? only.content
      : [command, ...heredocs.map(({ raw, name: end }) => raw + end)].join("\n");
    return flags + JSON.stringify([...shell, script]);
  }
  if (name !== "COPY" && name !== "ADD") return text;
  const left = [...heredocs];
  return text
    .split(/(\s+)/)
    .filter((word) => !/^--link(?:=|$)/.test(word))
    .map((word) => {
      const [next] = left;
      if (next?.word !== word) return word;
      left.shift();
      return addFile(next, 0o644);
    })
    .join("")
    .trimStart();
}

/** Null for what the builder will refuse. */
function readShell(text: string): string[] | null {
  const words = parseJson(text);
  return Array.isArray(words) && words.every((word) => typeof word === "string") ? words : null;
}

/** Leaves out the directive `# syntax=`, for which BuildKit would fetch and run a program. The numbers of lines stay the same. */
export function withoutSyntax(text: string): string {
  const lines = text.replace(/^\uFEFF/, "").split("\n");
  const isDirective = (line: string, index: number) =>
    /^#\s*[a-z]\w*\s*=\s*\S/i.test(line) || (index === 0 && line.startsWith("#!"));
  const end = lines.findIndex((line, index) => !isDirective(line, index));
  const directives = end === -1 ? lines : lines.slice(0, end);
  const kept = directives.filter((line) => !/^#\s*syntax\s*=/i.test(line));
  if (kept.length === directives.length) return text;
  return [...kept, ...emptyLines(directives.length - kept.length), ...lines.slice(directives.length)].join(
    "\n",
  );
}
