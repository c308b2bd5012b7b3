import { readFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { expect, it } from "vitest";
import { packageRoot } from "../../src/package-root.js";
import { temporaryDirectory } from "../support/sandbox.js";

const OMITTED = "…";

/** What differs between two runs and two machines. */
const varying: readonly [RegExp, string][] = [
  [/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, "ID"],
  [/sha256:[0-9a-f]{12}…/g, "DIGEST"],
  [/\/\S*\/rates\//g, "FOLDER/"],
  [/host\.internal:\d+/g, "host.internal:PORT"],
  [/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, "TIME"],
  [/\b[\d.]+ m?s\b/g, "DURATION"],
  [/\b[\d.]+ B\b/g, "SIZE"],
  [/^engine .*/gm, "engine"],
  [/^user .*/gm, "user"],
  [/^mounts +\d+/gm, "mounts N"],
  [/^tried: .*/gm, "tried"],
  [/^not provable .*/gm, "not provable"],
  [/ {2,}/g, " "],
];

function normalised(text: string): string[] {
  return varying
    .reduce((result, [pattern, word]) => result.replace(pattern, word), text.trim())
    .split("\n")
    .map((line) => line.trimEnd());
}

/** The output with an `…` wherever the page has one, as far as the lines around it are the same. */
function abridged(output: readonly string[], shown: readonly string[]): string[] {
  const lines: string[] = [];
  let at = 0;
  for (const [index, line] of shown.entries()) {
    if (line === OMITTED) {
      const next = shown[index + 1];
      const end = next === undefined ? output.length : output.indexOf(next, at);
      at = end < 0 ? at : end;
      lines.push(OMITTED);
    } else if (at < output.length) lines.push(output[at++] ?? "");
  }
  return [...lines, ...output.slice(at)];
}

it("the page on the network shows what npm run demo:allow-list prints: the receipt, the proof and the attempts to reach hosts", async () => {
  const page = readFileSync(join(packageRoot, "docs/network.md"), "utf8");
  const [, section = ""] = /npm run demo:allow-list[\s\S]*?^```console\n([\s\S]*?)^```/m.exec(page) ?? [];
  const shown = normalised(section);
  expect(shown.length).toBeGreaterThan(20);
  await using home = await temporaryDirectory();
  const { stdout } = await execa(process.execPath, [join(packageRoot, "scripts/demo-allow-list.mjs")], {
    env: { BRIG_HOME: home.path, CODEX_HOME: home.path },
  });
  expect(abridged(normalised(stdout), shown)).toEqual(shown);
});
