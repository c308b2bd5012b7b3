export interface Dockerfile {
  /** Uses of images that it does not build itself, in order; an image may occur several times. */
  bases: readonly BaseUse[];
  /** Features that only BuildKit has: with the classic builder they fail. Some are too new for the BuildKit of Docker 20.10. */
  buildKitFeatures: readonly BuildKitFeature[];
  platforms: readonly PlatformUse[];
  /** Arguments about the platform that it declares without a value. Only BuildKit gives them one by itself. */
  platformArguments: readonly string[];
  /** The number of instructions that take time to build. */
  steps: number;
}

/** A `FROM`, a `COPY --from` or a `RUN --mount` of an image. */
export interface BaseUse {
  /** Reference of the image, with variables replaced. */
  reference: string;
  instruction: Instruction;
}

/** A `FROM` that asks for a platform other than that of the engine. */
interface PlatformUse {
  /** Number of the line, from 1. */
  line: number;
  /** Platform such as `linux/arm64`, with variables replaced. */
  platform: string;
}

/** Reads a Dockerfile as far as brig needs it. What is wrong with it, the engine says when it builds. */
export function parseDockerfile(text: string, buildArgs: Readonly<Record<string, string>>): Dockerfile {
  const instructions = readInstructions(text.split("\n"));
  return {
    ...findBases(instructions, buildArgs),
    buildKitFeatures: instructions.flatMap(buildKitFeaturesOf),
    platformArguments: findPlatformArguments(instructions),
    steps: instructions.filter(({ name }) => takesTime.test(name)).length,
  };
}

/**
 * Replaces images by others, and leaves out platforms given by variables, which the classic builder does not know; the
 * numbers of lines stay the same.
 */
export function replaceBases(
  text: string,
  bases: readonly BaseUse[],
  replacementOf: (reference: string) => string,
): string {
  const lines = text.split("\n");
  const changed = new Map<Instruction, string>();
  for (const { reference, instruction } of bases) {
    const replacement = replacementOf(reference);
    const given = changed.get(instruction) ?? instruction.text;
    if (replacement === reference && !variablePlatform.test(given)) continue;
    const { name } = instruction;
    if (name === "FROM") changed.set(instruction, replaceImage(given, replacement));
    else {
      const options = optionsOf({ name, text: given });
      const inOption = (option: string, flag: string, from: string) =>
        from === reference ? flag + replacement : option;
      const rest = given.slice(options.length);
      changed.set(instruction, options.replaceAll(sourceImage, inOption) + rest);
    }
  }
  for (const [{ name, firstLine, headLine, heredocs }, rest] of changed) {
    const padding = emptyLines(headLine - firstLine);
    const line = `${name} ${rest}`;
    // A heredoc begins right below its instruction.
    const written = heredocs.length > 0 ? [...padding, line] : [line, ...padding];
    lines.splice(firstLine, headLine - firstLine + 1, ...written);
  }
  return lines.join("\n");
}

const variablePlatform = /(?<!\S)--platform=\S*\$\S*\s*/i;

/** In `--from=IMAGE` and `--mount=type=bind,from=IMAGE,target=/x`. */
const sourceImage = /((?<!\S)--(?:from=|mount=(?:[^\s,]*,)*?from=))([^\s,]+)/gi;

function replaceImage(text: string, replacement: string): string {
  const words = text.replace(variablePlatform, "").split(/\s+/);
  const at = words.findIndex((word) => !word.startsWith("--"));
  return words.with(at, replacement).join(" ");
}

function findBases(
  instructions: readonly Instruction[],
  buildArgs: Readonly<Record<string, string>>,
): Pick<Dockerfile, "bases" | "platforms"> {
  const bases: BaseUse[] = [];
  const platforms: PlatformUse[] = [];
  const variables = new Map<string, string>();
  const stages = new Set<string>();
  for (const instruction of instructions) {
    const { name, text, firstLine } = instruction;
    if (name === "ARG" && stages.size === 0) declare(text, { variables, buildArgs });
    const written =
      name === "FROM"
        ? [expandVariables(imageOf(text), variables)]
        : takesFiles.test(name)
          ? sourcesOf(instruction)
          : [];
    for (const reference of written) {
      const isStage = stages.has(reference.toLowerCase()) || (name !== "FROM" && /^\d+$/.test(reference));
      if (!isStage && reference !== "scratch" && reference !== "") bases.push({ reference, instruction });
    }
    if (name !== "FROM") continue;
    stages.add(stageName(text) ?? `stage ${stages.size}`);
    const [, platform] = /^(?:--\S+\s+)*?--platform=(\S+)/i.exec(text) ?? [];
    if (platform !== undefined && !isNativePlatform(platform))
      platforms.push({ line: firstLine + 1, platform: expandVariables(platform, variables) });
  }
  return { bases, platforms };
}

function findPlatformArguments(instructions: readonly Instruction[]): string[] {
  const declared = instructions.filter(({ name }) => name === "ARG").flatMap(({ text }) => text.split(/\s+/));
  return predefinedArguments.filter((name) => declared.includes(name));
}

/** Only the variables above the first stage count in a `FROM`. */
function declare(text: string, { variables, buildArgs }: Declarations): void {
  for (const [, name = "", doubleQuoted, singleQuoted, plain] of text.matchAll(declaration)) {
    const fallback = doubleQuoted ?? plain;
    const value =
      (Object.hasOwn(buildArgs, name) ? buildArgs[name] : undefined) ??
      singleQuoted ??
      (fallback === undefined ? undefined : expandVariables(fallback, variables));
    if (value !== undefined) variables.set(name, value);
  }
}

interface Declarations {
  variables: Map<string, string>;
  buildArgs: Readonly<Record<string, string>>;
}

const declaration = /([A-Za-z_]\w*)(?:=(?:"([^"]*)"|'([^']*)'|(\S*)))?(?=\s|$)/g;

function imageOf(text: string): string {
  return text.split(/\s+/).find((word) => !word.startsWith("--")) ?? "";
}

function stageName(text: string): string | null {
  return /\sas\s+(\S+)\s*$/i.exec(text)?.[1]?.toLowerCase() ?? null;
}

const takesTime = /^(?:FROM|RUN|COPY|ADD|WORKDIR)$/;

const takesFiles = /^(?:COPY|RUN)$/;

/** The part that can name images and stages; the rest of a RUN is the shell's. */
function optionsOf({ name, text }: Pick<Instruction, "name" | "text">): string {
  return name === "RUN" ? (/^(?:--\S+\s*)*/.exec(text)?.[0] ?? "") : text;
}

function sourcesOf(instruction: Instruction): string[] {
  return [...optionsOf(instruction).matchAll(sourceImage)].map(([, , from = ""]) => from);
}

/** One instruction of a Dockerfile. */
export interface Instruction {
  /** Name in capital letters: "FROM". */
  name: string;
  /** The rest, with continued lines joined. */
  text: string;
  /** Numbers of its first and its last line, from 0; a heredoc belongs to it. */
  firstLine: number;
  lastLine: number;
  /** The number of the last line above its heredocs. */
  headLine: number;
  heredocs: readonly Heredoc[];
}

/** Lines below an instruction that are an argument of it. */
export interface Heredoc {
  /** As it is written in the instruction: `<<-"EOF"`. */
  word: string;
  /** The line that ends it, and its name as a file: `EOF`. */
  name: string;
  /** The lines as they are, and without the tabs that `<<-` leaves out. */
  raw: string;
  content: string;
  /** Whether variables in it are not replaced. */
  isQuoted: boolean;
}

/** Splits a Dockerfile into its instructions. Comments, empty lines and the contents of heredocs are left out. */
export function readInstructions(lines: readonly string[]): Instruction[] {
  const continuation = escapeOf(lines);
  const instructions: Instruction[] = [];
  for (let at = 0; at < lines.length; ) {
    if (isBlank(lines[at] ?? "")) {
      at += 1;
      continue;
    }
    const instruction = readInstruction(lines, at, continuation);
    instructions.push(instruction);
    at = instruction.lastLine + 1;
  }
  return instructions;
}

function readInstruction(lines: readonly string[], firstLine: number, continuation: string): Instruction {
  const parts: string[] = [];
  let lastLine = firstLine;
  for (let at = firstLine; at < lines.length; at++) {
    const line = lines[at] ?? "";
    // Comments and empty lines inside an instruction do not end it.
    if (at > firstLine && isBlank(line)) continue;
    lastLine = at;
    const trimmed = line.trimEnd();
    if (!trimmed.endsWith(continuation)) {
      parts.push(trimmed);
      break;
    }
    parts.push(trimmed.slice(0, -1));
  }
  const whole = parts.join("").trim();
  const [name = ""] = whole.split(/\s/, 1);
  const text = whole.slice(name.length).trim();
  const { heredocs, end } = readHeredocs(lines, lastLine, text);
  return {
    name: name.toUpperCase(),
    text,
    firstLine,
    lastLine: end,
    headLine: lastLine,
    heredocs,
  };
}

function isBlank(line: string): boolean {
  return /^\s*(?:#|$)/.test(line);
}

/** The directive `# escape=` only counts above everything else. */
function escapeOf(lines: readonly string[]): string {
  for (const line of lines) {
    const directive = /^#\s*(\w+)\s*=\s*(\S+)\s*$/.exec(line.replace(/^\uFEFF/, ""));
    if (directive === null) break;
    if (directive[1]?.toLowerCase() === "escape") return directive[2] === "`" ? "`" : "\\";
  }
  return "\\";
}

const heredoc = /^\d*<<(-?)(["']?)([A-Za-z_][\w.]*)\2$/;

/** The heredocs of an instruction, and the last line of it. */
function readHeredocs(lines: readonly string[], lastLine: number, text: string) {
  let end = lastLine;
  const heredocs: Heredoc[] = [];
  for (const word of text.split(/\s+/)) {
    const [, dash = "", quote, name] = heredoc.exec(word) ?? [];
    if (name === undefined) continue;
    const from = end + 1;
    const plain = (line: string) => (dash === "" ? line : line.replace(/^\t+/, ""));
    const found = lines.findIndex((line, index) => index >= from && plain(line).replace(/\r$/, "") === name);
    if (found === -1) break;
    const inside = lines.slice(from, found);
    const joined = (all: readonly string[]) => all.map((line) => `${line}\n`).join("");
    heredocs.push({
      ...{ word, name, isQuoted: quote !== "" },
      ...{ raw: joined(inside), content: joined(inside.map(plain)) },
    });
    end = found;
  }
  return { heredocs, end };
}

export function emptyLines(count: number): string[] {
  return Array.from({ length: count }, () => "");
}

/** Arguments that BuildKit defines in every Dockerfile. */
const predefinedArguments = [
  "TARGETPLATFORM",
  "TARGETOS",
  "TARGETARCH",
  "TARGETVARIANT",
  "BUILDPLATFORM",
  "BUILDOS",
  "BUILDARCH",
  "BUILDVARIANT",
] as const;

/** The values of these arguments for an engine, which builds for its own platform only. */
export function platformValues(names: readonly string[], arch: string): Record<string, string> {
  const values = { PLATFORM: `linux/${arch}`, OS: "linux", ARCH: arch, VARIANT: "" };
  return Object.fromEntries(
    Object.entries(values)
      .flatMap(([name, value]) => [`TARGET${name}`, `BUILD${name}`].map((full) => [full, value] as const))
      .filter(([name]) => names.includes(name)),
  );
}

/** `$BUILDPLATFORM` and `$TARGETPLATFORM` are the engine's own. */
function isNativePlatform(written: string): boolean {
  return /^(?:\$(?:BUILD|TARGET)PLATFORM|\$\{(?:BUILD|TARGET)PLATFORM\})$/.test(written);
}

const otherNames: Readonly<Record<string, string>> = { x86_64: "amd64", "x86-64": "amd64", aarch64: "arm64" };

/** Whether a platform such as `linux/arm64/v8`, `arm64` or `linux` is that of an engine with this architecture. */
export function isPlatformOf(platform: string, arch: string): boolean {
  const [first = "", second] = platform.toLowerCase().split("/");
  if (second === undefined && first === "linux") return true;
  const wanted = second ?? first;
  return (second === undefined || first === "linux") && (otherNames[wanted] ?? wanted) === arch;
}

const use = /\\([\s\S])|\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?[-+])([^}]*))?\})/g;

/**
 * Replaces `$NAME`, `${NAME}`, `${NAME:-default}` and `${NAME:+alternative}` as a Dockerfile's builder does. Unknown
 * variables are empty.
 */
function expandVariables(text: string, variables: ReadonlyMap<string, string>): string {
  return text.replace(
    use,
    (_, escaped, plain, braced, operator: string | undefined, word: string | undefined) => {
      if (escaped !== undefined) return escaped;
      const value = variables.get(plain ?? braced);
      const isSet = operator?.startsWith(":") ? value !== undefined && value !== "" : value !== undefined;
      if (operator?.endsWith("-") && !isSet) return expandVariables(word ?? "", variables);
      if (operator?.endsWith("+")) return isSet ? expandVariables(word ?? "", variables) : "";
      return value ?? "";
    },
  );
}

export interface BuildKitFeature {
  /** Number of the line, from 1. */
  line: number;
  name: string;
  /** Whether the BuildKit of Docker 20.10 lacks it, and brig cannot say the same otherwise. */
  isRecent: boolean;
}

/** Those of Docker 20.10, and those that are left out for it. */
const earlyFlags: Readonly<Record<string, RegExp>> = {
  RUN: /^--(?:mount|network)\b/,
  COPY: /^--(?:link|chmod)\b/,
  ADD: /^--(?:link|chmod)\b/,
};

const recentFlags: Readonly<Record<string, RegExp>> = {
  RUN: /^--(?:security|device)\b/,
  COPY: /^--(?:parents|exclude)\b/,
  ADD: /^--(?:checksum|keep-git-dir|exclude|unpack)\b/,
  HEALTHCHECK: /^--start-interval\b/,
};

/** Instructions in which the builder replaces variables. In a shell they are the shell's own. */
const replacesVariables = /^(?:ADD|ARG|COPY|ENV|EXPOSE|FROM|LABEL|STOPSIGNAL|USER|VOLUME|WORKDIR)$/;
const patternInVariable = /(?<!\\)\$\{\w+(?:#|%|\/)/;
const gitSource = /^(?:git@|git:\/\/|https?:\/\/\S+\.git(?:#|$))/;

/** Parts of an instruction that the engine's classic builder refuses, or misunderstands. */
function buildKitFeaturesOf({ name, text, heredocs, firstLine }: Instruction): BuildKitFeature[] {
  const words = text.split(/\s+/);
  const firstOther = words.findIndex((word) => !word.startsWith("--"));
  const ownFlags = words.slice(0, firstOther === -1 ? words.length : firstOther);
  const named = (flags: Readonly<Record<string, RegExp>>) =>
    ownFlags
      .filter((word) => flags[name]?.test(word) ?? false)
      .map((word) => `${name} ${word.replace(/=.*/, "")}`);
  const hasVariables =
    name !== "RUN" && heredocs.some(({ isQuoted, content }) => !isQuoted && content.includes("$"));
  const recent = [
    ...named(recentFlags),
    ...(hasVariables ? [`a variable in a heredoc in ${name}`] : []),
    ...(replacesVariables.test(name) && patternInVariable.test(text)
      ? [`a pattern in \${…} in ${name}`]
      : []),
    ...(name === "ADD" && words.some((word) => gitSource.test(word)) ? ["a git repository in ADD"] : []),
  ];
  const early = [
    ...named(earlyFlags),
    ...(heredocs.length > 0 && !hasVariables ? [`a heredoc in ${name}`] : []),
  ];
  const feature = (isRecent: boolean) => (one: string) => ({ line: firstLine + 1, name: one, isRecent });
  return [...early.map(feature(false)), ...recent.map(feature(true))];
}

/** A Dockerfile with another instruction below each `FROM`. */
export interface ExtendedDockerfile {
  text: string;
  /** The number that a line of the text had before, both from 1. */
  originalLine(line: number): number;
}

/** Takes an empty line or a comment's where one follows, so that the numbers of most lines stay the same. */
export function addBelowStages(text: string, instruction: string): ExtendedDockerfile {
  const lines = text.split("\n");
  const added: number[] = [];
  for (const { name, lastLine } of readInstructions(lines).toReversed()) {
    if (name !== "FROM") continue;
    const next = lastLine + 1;
    const isFree = /^\s*(?:#|$)/.test(lines[next] ?? "x");
    lines.splice(next, isFree ? 1 : 0, instruction);
    if (!isFree) added.push(next + 1);
  }
  const before = (line: number) => added.toReversed().filter((at, index) => at + index < line).length;
  return { text: lines.join("\n"), originalLine: (line) => line - before(line) };
}
