import type { Instruction } from "./instructions.js";

export interface BuildKitFeature {
  /** Number of the line, from 1. */
  line: number;
  name: string;
}

const flags: Readonly<Record<string, RegExp>> = {
  RUN: /^--(?:mount|network|security|device)\b/,
  COPY: /^--(?:link|chmod|parents|exclude)\b/,
  ADD: /^--(?:link|chmod|checksum|keep-git-dir|exclude|unpack)\b/,
  HEALTHCHECK: /^--start-interval\b/,
};

/** Instructions in which the builder replaces variables. In a shell they are the shell's own. */
const replacesVariables = /^(?:ADD|ARG|COPY|ENV|EXPOSE|FROM|LABEL|STOPSIGNAL|USER|VOLUME|WORKDIR)$/;
const patternInVariable = /(?<!\\)\$\{\w+(?:#|%|\/)/;
const gitSource = /^(?:git@|git:\/\/|https?:\/\/\S+\.git(?:#|$))/;

/** Parts of an instruction that the engine's classic builder refuses, or misunderstands. */
export function buildKitFeaturesOf({ name, text, hasHeredoc, firstLine }: Instruction): BuildKitFeature[] {
  const words = text.split(/\s+/);
  const firstOther = words.findIndex((word) => !word.startsWith("--"));
  const ownFlags = words.slice(0, firstOther === -1 ? words.length : firstOther);
  const names = [
    ...ownFlags
      .filter((word) => flags[name]?.test(word) ?? false)
      .map((word) => `${name} ${word.replace(/=.*/, "")}`),
    ...(hasHeredoc ? [`a heredoc in ${name}`] : []),
    ...(replacesVariables.test(name) && patternInVariable.test(text)
      ? [`a pattern in \${…} in ${name}`]
      : []),
    ...(name === "ADD" && words.some((word) => gitSource.test(word)) ? ["a git repository in ADD"] : []),
  ];
  return names.map((one) => ({ line: firstLine + 1, name: one }));
}
