import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { refuseUnbuildable, wantedImages } from "../../../../../src/batch/runs/images/wanted-images.js";
import type { Task, TaskImage } from "../../../../../src/batch/tasks/task.js";
import type { EngineInfo } from "../../../../../src/sandbox/docker/engine-types.js";

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "brig-unbuildable-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
});

const engine = (product: string, apiVersion: string) => ({
  arch: "amd64",
  info: async () => ({ product, apiVersion }) as EngineInfo,
});
const docker20 = engine("docker", "1.41");

async function built(dockerfile: string, lines: string[]): Promise<TaskImage> {
  await writeFile(join(directory, dockerfile), lines.join("\n"));
  return { kind: "build", context: directory, dockerfile, buildArgs: {}, timeoutSec: 1 };
}

describe("images that cannot be built", () => {
  it("are named with all their lines, before anything is built", async () => {
    const wanted = [
      {
        task: "one",
        image: await built("One", ["FROM a", "RUN <<EOF", "x", "EOF", "COPY --parents --chmod=755 a b"]),
      },
      { task: "two", image: await built("Two", ["FROM --platform=linux/arm64 a"]) },
      { task: "three", image: await built("Three", ["FROM --platform=linux/amd64 a", "RUN true"]) },
      { task: "four", image: { kind: "reference", reference: "a" } as const },
    ];
    await expect(refuseUnbuildable(wanted, docker20)).rejects.toMatchObject({
      code: "image.build-failed",
      message: [
        "the images of these tasks cannot be built:",
        "  one: One:5: COPY --parents needs Docker 23 or newer",
        "  two: Two:1: it is for linux/arm64, and the engine is linux/amd64",
      ].join("\n"),
    });
    await refuseUnbuildable(wanted.slice(2), docker20);
    await refuseUnbuildable(wanted.slice(0, 1), engine("docker", "1.42"));
    await expect(refuseUnbuildable(wanted.slice(0, 1), engine("podman", "1.44"))).rejects.toThrow(
      "Docker 23",
    );
  });

  it("are not all named if there are very many", async () => {
    const image = await built("One", ["FROM a", "ADD --checksum=sha256:1 https://a.org/b /b"]);
    const wanted = Array.from({ length: 25 }, (_, index) => ({ task: `task ${index}`, image }));
    await expect(refuseUnbuildable(wanted, docker20)).rejects.toThrow(/task 19: .*\n {2}and 5 more$/s);
  });
});

describe("the images of tasks", () => {
  it("are those of agents and verifiers, each once", () => {
    const reference = (name: string): TaskImage => ({ kind: "reference", reference: name });
    const task = (name: string, image: string, verifier: string | null) =>
      ({
        name,
        environment: { image: reference(image) },
        steps: [{ verifier: { environment: verifier === null ? null : { image: reference(verifier) } } }],
      }) as unknown as Task;
    expect(wantedImages([task("one", "a", null), task("two", "a", "b"), task("three", "b", "c")])).toEqual([
      { task: "one", image: reference("a") },
      { task: "two", image: reference("b") },
      { task: "three", image: reference("c") },
    ]);
  });
});
