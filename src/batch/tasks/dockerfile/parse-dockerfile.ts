import { type BuildKitFeature, buildKitFeaturesOf } from "./build-kit-features.js";
import { type Instruction, readInstructions } from "./instructions.js";
import { isNativePlatform, predefinedArguments } from "./platforms.js";
import { expandVariables } from "./variables.js";

export interface Dockerfile {
  /** Uses of images that it does not build itself, in order; an image may occur several times. */
  bases: readonly BaseUse[];
  /** Features that only BuildKit has: with the classic builder they fail. */
  buildKitFeatures: readonly BuildKitFeature[];
  platforms: readonly PlatformUse[];
  /** Arguments about the platform that it declares without a value. Only BuildKit gives them one by itself. */
  platformArguments: readonly string[];
}

/** A `FROM`, or a `COPY --from`, of an image. */
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
    bases: findBases(instructions, buildArgs),
    buildKitFeatures: instructions.flatMap(buildKitFeaturesOf),
    platforms: findPlatforms(instructions, buildArgs),
    platformArguments: findPlatformArguments(instructions),
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
  for (const { reference, instruction } of bases) {
    const replacement = replacementOf(reference);
    if (replacement === reference && !variablePlatform.test(instruction.text)) continue;
    const { firstLine, lastLine } = instruction;
    const changed =
      instruction.name === "FROM"
        ? `FROM ${replaceImage(instruction.text, replacement)}`
        : `${instruction.name} ${instruction.text.replace(copySource, () => `--from=${replacement}`)}`;
    lines.splice(firstLine, lastLine - firstLine + 1, changed, ...emptyLines(lastLine - firstLine));
  }
  return lines.join("\n");
}

const variablePlatform = /(?<!\S)--platform=\S*\$\S*\s*/i;

const copySource = /(?<!\S)--from=\S+/i;

function emptyLines(count: number): string[] {
  return Array.from({ length: count }, () => "");
}

function replaceImage(text: string, replacement: string): string {
  const words = text.replace(variablePlatform, "").split(/\s+/);
  const at = words.findIndex((word) => !word.startsWith("--"));
  return words.with(at, replacement).join(" ");
}

function findBases(
  instructions: readonly Instruction[],
  buildArgs: Readonly<Record<string, string>>,
): BaseUse[] {
  const bases: BaseUse[] = [];
  const variables = new Map<string, string>();
  const stages = new Set<string>();
  for (const instruction of instructions) {
    const { name, text } = instruction;
    if (name === "ARG" && stages.size === 0) declare(text, { variables, buildArgs });
    const written = name === "FROM" ? imageOf(text) : name === "COPY" ? copiedFrom(text) : null;
    if (written === null) continue;
    const reference = name === "FROM" ? expandVariables(written, variables) : written;
    const isStage = stages.has(reference.toLowerCase()) || (name === "COPY" && /^\d+$/.test(reference));
    if (!isStage && reference !== "scratch" && reference !== "") bases.push({ reference, instruction });
    if (name === "FROM") stages.add(stageName(text) ?? `stage ${stages.size}`);
  }
  return bases;
}

function findPlatforms(
  instructions: readonly Instruction[],
  buildArgs: Readonly<Record<string, string>>,
): PlatformUse[] {
  const variables = new Map<string, string>();
  const platforms: PlatformUse[] = [];
  let isAboveStages = true;
  for (const { name, text, firstLine } of instructions) {
    if (name === "ARG" && isAboveStages) declare(text, { variables, buildArgs });
    if (name !== "FROM") continue;
    isAboveStages = false;
    const [, written] = /^(?:--\S+\s+)*?--platform=(\S+)/i.exec(text) ?? [];
    if (written === undefined || isNativePlatform(written)) continue;
    platforms.push({ line: firstLine + 1, platform: expandVariables(written, variables) });
  }
  return platforms;
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

function copiedFrom(text: string): string | null {
  return copySource.exec(text)?.[0].slice("--from=".length) ?? null;
}
