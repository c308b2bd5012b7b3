import { expect, it } from "vitest";
import type { CreatedContainer } from "../../../../src/sandbox/docker/engine-types.js";
import { createContainerBody } from "../../../../src/sandbox/plan/create-body.js";
import type { SandboxPlan } from "../../../../src/sandbox/plan/plan.js";
import { compareCreated, requireAsRequested } from "../../../../src/sandbox/proof/compare-authority.js";
import { planFor } from "../plan/plan-fixture.js";

const imageId = "sha256:1";

async function bodyOf(overridden: SandboxPlan["overridden"]) {
  const plan = await planFor(null);
  return createContainerBody(
    { ...plan, overridden },
    { toolbox: { volume: "t", directory: "/t" }, tokenHash: "", seccompJson: "" },
  );
}

const body = await bodyOf({
  environment: ["LD_PRELOAD", "HOME", "JAVA_HOME"],
  labels: ["a", "brig.session"],
});
const asAsked: CreatedContainer = {
  imageId,
  entrypoint: body.Entrypoint,
  cmd: body.Cmd,
  user: body.User ?? "",
  workingDir: "/",
  env: body.Env,
  labels: Object.fromEntries(Object.entries(body.Labels).toReversed()),
  stopSignal: "SIGKILL",
  healthcheck: ["NONE"],
};

it("takes a container that is as it was asked for, with what engines add themselves", () => {
  expect(compareCreated(body, imageId, asAsked)).toEqual([]);
  expect(compareCreated(body, imageId, { ...asAsked, env: [...body.Env, "container=podman"] })).toEqual([]);
  const emptied = body.Env.map((entry) => (entry.includes("=") ? entry : `${entry}=`));
  expect(compareCreated(body, imageId, { ...asAsked, env: emptied })).toEqual([]);
});

it("asks the engine to leave out what the image sets, and to blank its labels", () => {
  expect(body.Env).toEqual(expect.arrayContaining(["LD_PRELOAD", "JAVA_HOME", "HOME=/home/brig"]));
  expect(body.Env).not.toContain("HOME");
  expect(body.Labels).toMatchObject({ a: "", "brig.session": "5f1c0e0a" });
});

it.each<[string, Partial<CreatedContainer>]>([
  ["FROM", { imageId: "sha256:2" }],
  ["ENTRYPOINT", { entrypoint: ["/bin/sh"] }],
  ["CMD", { cmd: [] }],
  ["USER", { user: "0:0" }],
  ["WORKDIR", { workingDir: "/odd" }],
  ["STOPSIGNAL", { stopSignal: "SIGTERM" }],
  ["HEALTHCHECK", { healthcheck: ["CMD", "true"] }],
  ["HEALTHCHECK", { healthcheck: [] }],
  ["ENV", { env: [...body.Env, "BASH_ENV=/x"] }],
  ["ENV", { env: [...body.Env, "LD_PRELOAD=/x"] }],
  ["ENV", { env: body.Env.filter((entry) => !entry.startsWith("HOME=")) }],
  ["ENV", { env: [...body.Env, "HOSTNAME=$(id)"] }],
  ["LABEL", { labels: { ...asAsked.labels, other: "x" } }],
  ["LABEL", { labels: { ...asAsked.labels, "brig.session": "forged" } }],
])("names %s where an engine let it be %j", (name, change) => {
  expect(compareCreated(body, imageId, { ...asAsked, ...change })).toEqual([name]);
});

it("refuses in those words", () => {
  expect(() =>
    requireAsRequested(body, imageId, { ...asAsked, healthcheck: ["CMD", "true"], user: "" }),
  ).toThrow(
    expect.objectContaining({
      code: "policy.not-enforced",
      message: expect.stringMatching(/"brig\/base": USER, HEALTHCHECK differs/),
    }),
  );
});
