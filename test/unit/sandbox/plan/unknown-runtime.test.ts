import { expect, it } from "vitest";
import { refuseUnknownRuntime } from "../../../../src/sandbox/plan/unknown-runtime.js";

const runtimes = ["runc", "runsc"];

it.each([undefined, "runc", "runsc", "io.containerd.kata.v2", "/opt/runtime", "dir/runtime"])(
  "the runtime %s is taken",
  (runtime) => {
    expect(() => refuseUnknownRuntime(runtime, { runtimes })).not.toThrow();
  },
);

it("any runtime is taken where the engine does not say which it has", () => {
  expect(() => refuseUnknownRuntime("anything", { runtimes: [] })).not.toThrow();
});

it.each([
  ["rnusc", "did you mean runsc? It has runc, runsc"],
  ["something-else", "it has runc, runsc"],
  ["", "it has runc, runsc"],
])("the runtime %j that the engine does not have is refused: %s", (runtime, hint) => {
  expect(() => refuseUnknownRuntime(runtime, { runtimes })).toThrow(
    expect.objectContaining({
      code: "usage.invalid",
      message: `the engine has no runtime ${JSON.stringify(runtime)}`,
      hint,
    }),
  );
});
