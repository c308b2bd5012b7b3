import { readFileSync } from "node:fs";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, it } from "vitest";
import { attempts, type MethodPlace, publicMethods } from "../../support/e2b-methods.js";
import { openServed, type Served } from "../../support/served.js";

const page = readFileSync(new URL("../../../docs/e2b.md", import.meta.url), "utf8");
const manifest = (path: string) =>
  JSON.parse(readFileSync(new URL(`../../../${path}package.json`, import.meta.url), "utf8"));

let served: Served;
let place: MethodPlace;

beforeAll(async () => {
  served = await openServed({ allowsNetwork: true, limits: { maxPlaces: 6, maxPerClient: 6 } });
  const options = served.e2b[0];
  place = { options, sandbox: await Sandbox.create({ ...options, timeoutMs: 600_000 }) };
});

afterAll(async () => {
  await served[Symbol.asyncDispose]();
});

it("the tested version is the one that is installed, and that the page names", () => {
  const { version } = manifest("node_modules/e2b/");
  expect(manifest("").devDependencies.e2b).toBe(version);
  expect(page).toContain(`\`e2b@${version}\``);
});

it("each public method of the package has been tried", async () => {
  expect(Object.keys(attempts).toSorted()).toEqual(await publicMethods(place));
});

it("the page says of each method what comes of it", async () => {
  const outcomes = new Map<string, string>();
  for (const [name, attempt] of Object.entries(attempts)) outcomes.set(name, await outcomeOf(name, attempt));
  const rows = rowsOf(outcomes);
  const table = ["| methods | |", "|---|---|", ...rows].join("\n");
  expect(page, table).toContain(table);
  expect(served.warnings).toEqual([]);
});

async function outcomeOf(name: string, attempt: (typeof attempts)[string]): Promise<string> {
  const given = typeof attempt === "function" ? { try: attempt } : attempt;
  try {
    await given.try(place);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const [, words] = /brig does not support ([^;]+)/.exec(message) ?? [];
    const said = words ?? given.refused;
    if (said === undefined) throw new Error(`${name}: ${message}`, { cause: error });
    return `refused: ${said}`;
  }
  if (given.refused !== undefined) throw new Error(`${name} works, but should be refused`);
  return given.differs === undefined ? "works" : `differs: ${given.differs}`;
}

/** One row for all methods of an object of which the same is to be said. */
function rowsOf(outcomes: ReadonlyMap<string, string>): string[] {
  const groups = new Map<string, string[]>();
  for (const [name, outcome] of outcomes) {
    const key = `${name.slice(0, name.indexOf("."))} ${outcome}`;
    groups.set(key, [...(groups.get(key) ?? []), name]);
  }
  return [...groups.values()].map(
    (names) => `| ${names.map((name) => `\`${name}\``).join(", ")} | ${outcomes.get(names[0] ?? "")} |`,
  );
}
