import { expect, it } from "vitest";
import { createSandbox } from "../../../src/sandbox/create-sandbox.js";
import type { Engine } from "../../../src/sandbox/docker/engine-types.js";

const neverAnswers = new Promise<Engine>(() => undefined);

it("gives up an engine that never answers when its signal is aborted", async () => {
  const controller = new AbortController();
  const opening = createSandbox({ engine: neverAnswers, signal: controller.signal });
  const reason = new Error("enough");
  controller.abort(reason);
  await expect(opening).rejects.toBe(reason);
});

it("tells of a policy that is wrong before an engine that never answers, or fails", async () => {
  const wrong = { policyFile: "/there/is/no-such-policy.toml" };
  const refused = { code: "policy.invalid" };
  await expect(createSandbox({ ...wrong, engine: neverAnswers })).rejects.toMatchObject(refused);
  const fails = Promise.reject(new Error("no engine"));
  await expect(createSandbox({ ...wrong, engine: fails })).rejects.toMatchObject(refused);
});

it("an engine that is none of brig's connections is refused before anything is asked of it", async () => {
  const endpoint = "unix:///var/run/docker.sock";
  await expect(createSandbox({ engine: { endpoint } })).rejects.toMatchObject({
    code: "usage.invalid",
    hint: expect.stringContaining("engine property of another sandbox"),
  });
});

it("an engine that fails before anybody needs it ends no program", async () => {
  const engine = Promise.reject(new Error("no engine"));
  await expect(createSandbox({ engine, at: 1 })).rejects.toMatchObject({ code: "usage.invalid" });
  await new Promise((resolve) => setImmediate(resolve));
});

it.each([
  [{ memoryMb: 5 }, "limits.memoryMb"],
  [{ memoryMb: 512.5 }, "limits.memoryMb"],
  [{ memoryMb: "512m" }, "limits.memoryMb"],
  [{ cpus: 0 }, "limits.cpus"],
  [{ cpus: Number.NaN }, "limits.cpus"],
  [{ pids: -1 }, "limits.pids"],
  [{ pids: 1e9 }, "limits.pids"],
  [{ memory: 512 }, "memory"],
  [null, "limits"],
])(
  "limits that are wrong are refused by name before an engine that never answers: %j",
  async (limits, name) => {
    await expect(createSandbox({ limits: limits as object, engine: neverAnswers })).rejects.toMatchObject({
      code: "usage.invalid",
      message: expect.stringContaining(name),
    });
  },
);
