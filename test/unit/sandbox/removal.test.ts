import { expect, it } from "vitest";
import { engineFailure, RefusedRequest } from "../../../src/sandbox/docker/engine-failure.js";
import { removeAndConfirm } from "../../../src/sandbox/removal.js";

/** As Docker 20.10 answers for a container in which a command made a tree of 20 000 directories, one in the other. */
const words = `driver "overlay2" failed to remove root filesystem: openfdat /var/lib/docker/overlay2/x/diff${"/d".repeat(20_000)}: too many open files`;

it("a tree that is too deep for the engine to remove is told as such, in few words", async () => {
  const refused = engineFailure(new RefusedRequest(500, JSON.stringify({ message: words })), {
    doing: "remove the container",
    address: "/run/docker.sock",
  });
  const refuses = {
    waitContainer: async () => 0,
    waitRemoved: async () => undefined,
    inspectContainer: async () => null,
    unpauseContainer: async () => undefined,
    removeContainer: async () => {
      throw refused;
    },
  };
  const failure = await removeAndConfirm(refuses, "0123456789abcdef").then(null, (error: unknown) => error);
  expect(failure).toMatchObject({ code: "engine.failed", hint: expect.stringContaining("LimitNOFILE") });
  expect(String(failure).length).toBeLessThan(1300);
});
