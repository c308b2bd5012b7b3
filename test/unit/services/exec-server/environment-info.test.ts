import { expect, it } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import type { FileStat } from "../../../../src/sandbox/sandbox-types.js";
import { shellOf } from "../../../../src/services/exec-server/environment-info.js";

/** The files of an image that has only these, each with its mode. */
function image(modes: Record<string, number>) {
  return {
    async stat(path: string): Promise<FileStat> {
      const mode = modes[path];
      if (mode === undefined) throw new BrigError("none", { code: "file.not-found", errno: "ENOENT" });
      const [type, none] = ["file" as const, { uid: 0, gid: 0, dev: 0n, ino: 0n, linkTarget: null }];
      return { type, mode, sizeBytes: 1, modifiedMs: 0, ...none };
    },
  };
}

it.each([
  [
    { "/bin/bash": 0o755, "/bin/sh": 0o755 },
    { name: "bash", path: "/bin/bash" },
  ],
  [
    { "/usr/local/bin/bash": 0o755, "/bin/sh": 0o755 },
    { name: "bash", path: "/usr/local/bin/bash" },
  ],
  [
    { "/bin/bash": 0o644, "/bin/sh": 0o755 },
    { name: "sh", path: "/bin/sh" },
  ],
])("of %o the shell is %o", async (modes, shell) => {
  expect(await shellOf(image(modes))).toEqual(shell);
});

it("an image without a shell is named as what is wrong", async () => {
  await expect(shellOf(image({}))).rejects.toThrow(/the image has no shell: .*\/bin\/sh.*--container-image/);
});

it("a sandbox that is gone is no image without a shell", async () => {
  const stat = async () => {
    throw new BrigError("gone", { code: "sandbox.gone" });
  };
  await expect(shellOf({ stat })).rejects.toMatchObject({ code: "sandbox.gone" });
});
