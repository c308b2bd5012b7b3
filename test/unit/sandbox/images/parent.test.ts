import { expect, it } from "vitest";
import type { Engine } from "../../../../src/sandbox/docker/engine-types.js";
import { provideParent } from "../../../../src/sandbox/images/ensure.js";

const unreachable = new Error("no route to host");

/** An engine with these images for amd64, which no registry answers. */
function offlineEngine(...images: readonly string[]): Engine {
  return {
    inspectImage: async (ref: string) => (images.includes(ref) ? { arch: "amd64" } : null),
    async pullImage() {
      throw unreachable;
    },
  } as unknown as Engine;
}

it("images are based on what the set-up of a checkout has built, if the engine has no other Debian", async () => {
  const engine = offlineEngine("brig/debian:bookworm-slim");
  expect(await provideParent(engine, { arch: "amd64" })).toBe("brig/debian:bookworm-slim");
});

it.each([
  ["amd64", offlineEngine()],
  ["arm64", offlineEngine("debian:bookworm-slim")],
])("without a Debian for %s, and without a registry, it is said what to run", async (arch, engine) => {
  await expect(provideParent(engine, { arch })).rejects.toMatchObject({
    code: "image.build-failed",
    message: "the engine does not have debian:bookworm-slim, and no registry gives it",
    hint: expect.stringContaining("docker pull debian:bookworm-slim"),
    cause: unreachable,
  });
});

it("who calls it off while the registry is asked gets the reason", async () => {
  const reason = new Error("enough");
  const options = { arch: "amd64", signal: AbortSignal.abort(reason) };
  await expect(provideParent(offlineEngine(), options)).rejects.toBe(reason);
});
