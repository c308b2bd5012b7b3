import { expect, it, vi } from "vitest";
import { BrigError } from "../../../src/errors.js";
import { diagnoseRuntimes } from "../../../src/sandbox/diagnose-runtimes.js";
import type { EngineRuntime } from "../../../src/sandbox/docker/engine-types.js";
import type { PlayedEngine } from "./played-engine.js";
import { failure, playedPlace } from "./played-sandbox.js";

const runc: EngineRuntime = { name: "runc", program: "runc", args: [] };
const kata: EngineRuntime = { name: "kata", program: "/opt/kata/kata-runtime", args: [] };

/** The diagnosis of an engine with these runtimes. */
async function diagnosed(
  runtimes: EngineRuntime[],
  { defaultRuntime = "runc", change = () => undefined }: { defaultRuntime?: string; change?: Change } = {},
) {
  const { engine, environment, brigHome } = await playedPlace();
  vi.stubEnv("BRIG_HOME", brigHome);
  const info = engine.info;
  engine.info = async () => ({ ...(await info()), runtimes, defaultRuntime });
  change(engine);
  const checks = await diagnoseRuntimes(engine.asEngine, { environment });
  return { engine, checks };
}
type Change = (engine: PlayedEngine) => void;

it("a runtime that shares the engine's kernel is not tried", async () => {
  const { engine, checks } = await diagnosed([runc, { name: "own", program: "/usr/bin/crun", args: [] }]);
  expect(checks).toEqual([]);
  expect(engine.containers).toEqual([]);
});

it("any other is tried with a sandbox, of which nothing is left", async () => {
  const { engine, checks } = await diagnosed([runc, kata, { ...kata, name: "kata-2", program: null }]);
  expect(checks).toEqual([
    {
      id: "runtime-kata",
      title: "runtime kata",
      status: "ok",
      found: "/opt/kata/kata-runtime; a sandbox starts",
      advice: null,
    },
    expect.objectContaining({ id: "runtime-kata-2", found: "its program is not named; a sandbox starts" }),
  ]);
  expect(engine.containers.map(({ body }) => body.HostConfig.Runtime)).toEqual(["kata", "kata-2"]);
  expect(engine.containers.every(({ body }) => body.HostConfig.ReadonlyRootfs)).toBe(true);
  expect(engine.running).toEqual([]);
});

it("of many the first eight are tried", async () => {
  const many = Array.from({ length: 9 }, (_, i) => ({ ...kata, name: `kata-${i}` }));
  expect((await diagnosed(many)).checks.map(({ id }) => id)).toEqual(
    many.slice(0, 8).map(({ name }) => `runtime-${name}`),
  );
});

const broken: Change = (engine) => {
  engine.startContainer = async () => {
    throw new BrigError("it does not start", { code: "engine.failed" });
  };
};
const withHint: Change = (engine) => {
  engine.startContainer = async () => {
    throw new BrigError("it does not start", { code: "engine.failed", hint: "do this" });
  };
};
const noImage: Change = (engine) => {
  engine.inspectImage = async () => null;
};

it.for<[string, Change, object]>([
  [
    "runc",
    broken,
    {
      status: "warn",
      found: "/opt/kata/kata-runtime: it does not start",
      advice: "leave --runtime out",
    },
  ],
  ["kata", broken, { status: "fail", advice: expect.stringContaining("default-runtime") }],
  ["runc", withHint, { status: "warn", advice: "do this" }],
  ["kata", withHint, { status: "fail", advice: "do this" }],
  [
    "kata",
    noImage,
    { status: "warn", found: expect.stringMatching(/^\/opt\/kata\/kata-runtime: not tried, .*brig\/base/) },
  ],
])(
  "a runtime without a working sandbox, where the default is %s, is reported",
  async ([defaultRuntime, change, expected]) => {
    const { checks } = await diagnosed([runc, kata], { defaultRuntime, change });
    expect(checks).toEqual([expect.objectContaining({ id: "runtime-kata", ...expected })]);
  },
);

it("a runtime whose program nobody names is reported without it", async () => {
  const { checks } = await diagnosed([{ ...kata, program: null }], { change: broken });
  expect(checks[0]?.found).toBe("no program named: it does not start");
});

it("a fault of brig's own is none of a runtime", async () => {
  const fault = new TypeError("brig's own");
  const change: Change = (engine) => {
    engine.inspectImage = async () => {
      throw fault;
    };
  };
  expect(await failure(diagnosed([kata], { change }))).toBe(fault);
});
