import { describe, expect, it } from "vitest";
import { changesOutside, groupsOf } from "../../../../../../src/batch/runs/grading/confirm-pass.js";
import type { ContainerChange } from "../../../../../../src/sandbox/docker/engine-types.js";

const changes = (...given: [ContainerChange["kind"], string][]): ContainerChange[] =>
  given.map(([kind, path]) => ({ kind, path }));

describe("what an agent has changed outside of its work", () => {
  it("is each file, and a new directory as a whole; the work and what is made for tests is not", () => {
    const found = changesOutside(
      changes(
        ["changed", "/app"],
        ["added", "/app/answer.txt"],
        ["changed", "/root"],
        ["added", "/root/.config"],
        ["added", "/root/.config/curlrc"],
        ["changed", "/usr"],
        ["changed", "/usr/bin"],
        ["changed", "/usr/bin/make"],
        ["deleted", "/usr/bin/wc"],
        ["added", "/srv/out/report"],
        ["added", "/tests/test.sh"],
        ["added", "/logs/agent/log"],
        ["added", "/solution"],
        ["changed", "/etc/hosts"],
        ["changed", "/appendix"],
      ),
      ["/app", "/srv/out"],
    );
    expect(found.map(({ path }) => path)).toEqual([
      "/appendix",
      "/root/.config",
      "/usr/bin/make",
      "/usr/bin/wc",
    ]);
  });

  it("of a directory that also has work in it is never the whole directory", () => {
    const given = changes(["added", "/srv"], ["added", "/srv/other"], ["added", "/srv/out"]);
    expect(changesOutside(given, ["/srv/out"]).map(({ path }) => path)).toEqual(["/srv/other"]);
  });

  it("is tried by directories if there is too much of it", () => {
    const many = Array.from({ length: 300 }, (_, index): [ContainerChange["kind"], string] => [
      "added",
      `/usr/lib/package/${index % 2}/file-${index}`,
    ]);
    const groups = groupsOf(changes(...many, ["added", "/etc/own.conf"]));
    expect(groups.map(({ path, changes: own }) => [path, own.length])).toEqual([
      ["/usr/lib/package/0", 150],
      ["/usr/lib/package/1", 150],
      ["/etc/own.conf", 1],
    ]);
    expect(groupsOf(changes(["added", "/a/b"], ["deleted", "/a/c"])).map(({ path }) => path)).toEqual([
      "/a/b",
      "/a/c",
    ]);
  });
});
