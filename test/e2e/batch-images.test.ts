import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { packageRoot } from "../../src/package-root.js";
import { brigHere } from "../support/cli-here.js";
import { testEngine } from "../support/engine.js";
import { startResponsesServer, turn } from "../support/responses-server.js";
import { temporaryDirectory } from "../support/sandbox.js";

const example = join(packageRoot, "examples/tasks/python-bug");

async function place() {
  const { path, [Symbol.asyncDispose]: remove } = await temporaryDirectory();
  onTestFinished(() => remove());
  const run = (...args: string[]) =>
    brigHere(["batch", ...args], { cwd: path, env: { BRIG_HOME: join(path, "home"), LOCAL_KEY: "k" } });
  return { path, run };
}

it("brig batch looks at all images before anything runs, under their other names too", async () => {
  const { path, run } = await place();
  await cp(example, join(path, "task"), { recursive: true });
  const dockerfile = join(path, "task/environment/Dockerfile");
  const original = await readFile(dockerfile, "utf8");
  const chance = `brig.test-image=${path}`;
  await writeFile(dockerfile, `${original.replace("brig/base", "example.invalid/base:1")}LABEL ${chance}\n`);
  onTestFinished(async () => {
    const engine = await testEngine();
    for (const { tags } of await engine.listImages([chance]))
      for (const tag of tags) await engine.removeImage(tag);
  });
  const args = ["task", "--agent", "nop", "--offline", "-o", "out", "--prebuild-only"];

  const missing = await run(...args);
  expect(missing.exitCode).not.toBe(0);
  expect(missing.stderr).toContain("the image example.invalid/base:1 is not on the engine");

  const alias = ["-c", 'images.alias."example.invalid/base:1"="brig/base"'];
  const built = await run(...args, ...alias, "--image-budget", "500TB", "--json");
  expect(built, built.stderr).toMatchObject({ exitCode: 0, stdout: '{\n  "images": 1\n}\n' });
  expect(await (await testEngine()).listImages([chance])).toHaveLength(1);
  // There may be others of other tests.
  const swept = await brigHere(["gc", "--dry-run"], { env: { BRIG_HOME: join(path, "home") } });
  expect(swept.stdout).toMatch(
    /^(1 image|[0-9]+ images) of tasks stay; those that nobody needs are removed by: brig image prune --tasks$/m,
  );

  await writeFile(dockerfile, `${original}ADD --checksum=sha256:1 https://a.org/b /b\n`);
  const refused = await run(...args, ...alias);
  expect(refused.stderr).toContain("brig/python-bug: Dockerfile:5: ADD --checksum needs Docker 23 or newer");
  expect(refused.exitCode).not.toBe(0);
  expect(await readdir(path)).not.toContain("out");
});

it("brig batch says what a model has cost, and ends at a limit of it", async () => {
  const { path, run } = await place();
  const call = { id: "c", name: "exec_command", args: { cmd: "true" } };
  await using server = await startResponsesServer([turn({ calls: [call] })]);
  const provider = `model_providers.local={ base_url = "${server.url}", env_key = "LOCAL_KEY" }`;
  const args = [
    example,
    "-o",
    "out",
    "-n",
    "1",
    "-k",
    "2",
    "-m",
    "tiny",
    "-c",
    "model_provider=local",
    "-c",
    provider,
  ];

  const limits = ["--max-cost", "3", "--max-total-cost", "1"];
  const unknown = await run(...args, ...limits);
  expect(unknown.exitCode).toBe(2);
  expect(unknown.stderr).toContain("the cost of the model tiny cannot be limited");
  expect(unknown.stderr).toContain('[prices."tiny"]');
  const planned = await run(...args, "--dry-run");
  expect(planned.stderr.match(/no price of the model tiny is known/g)).toHaveLength(1);

  // A request has 100 input tokens, of which 40 were cached, and 20 output tokens: 1.80 dollars.
  const price = "prices.tiny={ input = 20000, cached_input = 5000, output = 20000 }";
  const known = await run(...args, ...limits, "-c", price);
  expect(known.stdout).toContain("for $3.60");
  const results = (await readFile(join(path, "out/results.jsonl"), "utf8")).trimEnd().split("\n");
  expect(results).toHaveLength(1);
  const { usage, steps } = JSON.parse(results[0] ?? "");
  expect(usage).toMatchObject({ turns: 2, costUsd: expect.closeTo(3.6, 9) });
  expect(steps).toMatchObject([{ agent: "limit", agentMessage: "the limit of 3 US dollars is reached" }]);
});
