import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { refuseUnbuildable, wantedImages } from "../../../../../src/batch/runs/images/build-plan.js";
import type { Task, TaskImage } from "../../../../../src/batch/tasks/task.js";

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "brig-unbuildable-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
});

async function built(dockerfile: string, lines: string[]): Promise<TaskImage> {
  await writeFile(join(directory, dockerfile), lines.join("\n"));
  return { kind: "build", context: directory, dockerfile, buildArgs: {}, timeoutSec: 1 };
}

describe("images that cannot be built", () => {
  it("are named with all their lines, before anything is built", async () => {
    const wanted = [
      { task: "one", image: await built("One", ["FROM a", "RUN <<EOF", "x", "EOF", "COPY --chmod=755 a b"]) },
      { task: "two", image: await built("Two", ["FROM --platform=linux/arm64 a"]) },
      { task: "three", image: await built("Three", ["FROM --platform=linux/amd64 a", "RUN true"]) },
      { task: "four", image: { kind: "reference", reference: "a" } as const },
    ];
    await expect(refuseUnbuildable(wanted, "amd64")).rejects.toMatchObject({
      code: "image.build-failed",
      message: [
        "the images of these tasks cannot be built:",
        "  one: One:2: a heredoc in RUN needs BuildKit",
        "  one: One:5: COPY --chmod needs BuildKit",
        "  two: Two:1: it is for linux/arm64, and the engine is linux/amd64",
      ].join("\n"),
    });
    await refuseUnbuildable(wanted.slice(2), "amd64");
  });

  it("are not all named if there are very many", async () => {
    const image = await built("One", ["FROM a", "RUN --mount=type=cache,target=/x true"]);
    const wanted = Array.from({ length: 25 }, (_, index) => ({ task: `task ${index}`, image }));
    await expect(refuseUnbuildable(wanted, "amd64")).rejects.toThrow(/task 19: .*\n {2}and 5 more$/s);
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
