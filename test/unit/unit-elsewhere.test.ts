import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const { files } = JSON.parse(readFileSync(join(root, "test/unit-elsewhere.json"), "utf8")) as {
  files: string[];
};

/** What is something else for another user, on one processor, in another locale or time zone. */
const askingForTheUser = /\bprocess\.(?:get|set)e?[ug]id\b|\b[gs]ete?[ug]id\?\.\(|\buserInfo\(|\bhomedir\(/;
const depending: readonly RegExp[] = [
  askingForTheUser,
  /\b[lf]?ch(?:mod|own)(?:Sync)?\(|\bumask\(|\baccess(?:Sync)?\(|\.mode & /,
  /\bavailableParallelism\(|\bcpus\(/,
  /\bIntl\.|\.toLocale\w*\(|\.localeCompare\(|\bLC_[A-Z]+\b|\bLANG\b/,
  /\bTZ\b|\.(?:get|set)(?:Hours|Minutes|Seconds|FullYear|Month|Date|Day|TimezoneOffset)\(/,
  /\.to(?:Date|Time)String\(|\bnew Date\([^()]+,/,
];
/** Tests play these errors too, but source waits for them where the user matters. */
const refusals = /\bEACCES\b|\bEPERM\b/;

const tests = readdirSync(join(root, "test/unit"), { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".test.ts"))
  .map((path) => `test/unit/${path}`);

/** Comments are left out. */
function codeOf(path: string): string {
  const code = existsSync(join(root, path)) ? readFileSync(join(root, path), "utf8") : "";
  return code.replace(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, "");
}

/** The file whose test this is, where there is one of the same name. */
function testedBy(test: string): string {
  const name = test.slice("test/unit/".length, -".test.ts".length);
  const [folder] = name.split("/");
  const place = folder === "support" || folder === "bench" ? "test/" : folder === "scripts" ? "" : "src/";
  return ["ts", "tsx", "mjs", "js"].map((end) => codeOf(`${place}${name}.${end}`)).join("\n");
}

/** What a test imports of the tests' own files. */
function supportOf(test: string): string {
  const imported = codeOf(test).matchAll(/from "(\.[^"]+)\.js"/g);
  return [...imported]
    .map(([, path = ""]) => join(test, "..", `${path}.ts`))
    .filter((path) => path.startsWith("test/"))
    .map(codeOf)
    .join("\n");
}

function dependsOnTheMachine(test: string): boolean {
  const [own, tested] = [codeOf(test), testedBy(test)];
  return (
    depending.some((one) => one.test(own) || one.test(tested)) ||
    refusals.test(tested) ||
    askingForTheUser.test(supportOf(test))
  );
}

it("the tests that another user, locale or time zone can change are on the list of those that run elsewhere", () => {
  expect(tests.filter((test) => dependsOnTheMachine(test) && !files.includes(test))).toEqual([]);
});

it("the list names tests that exist, each once and in order", () => {
  expect(files.filter((file) => !tests.includes(file))).toEqual([]);
  expect(files).toEqual([...new Set(files)].toSorted());
});

it("the check sees such a test", () => {
  expect(dependsOnTheMachine("test/unit/sandbox/docker/diagnosis/system.test.ts")).toBe(true);
  expect(files.length).toBeLessThan(tests.length / 4);
});
