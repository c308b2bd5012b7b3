import { describe, expect } from "vitest";
import { removeTests } from "../../../src/batch/runs/grading/run-tests.js";
import { makeDirectories, makeExactly, standAs } from "../../../src/batch/runs/place/make-directories.js";
import {
  emptyDirectories,
  stillEmpty,
  timesTellApart,
  untouched,
} from "../../../src/batch/runs/place/upload-directory.js";
import { stopSandbox } from "../../../src/sandbox/stopped-sandbox.js";
import { sandboxTest } from "../../support/sandbox.js";
import { openBare } from "../../support/task-attempts.js";

const root = { uid: 0, gid: 0 };
const TOUCHES = `
cd /w; touch added/file; chown nobody owned; chmod 700 closed; mkdir -p nested/below; rmdir replaced; ln -s /w/left replaced
touch -r hidden /tmp/time; touch hidden/file; touch -r /tmp/time hidden`;

describe("directories that brig makes in a container", () => {
  sandboxTest("need not be read again as long as nothing touches them", async ({ directory }) => {
    await using bare = await openBare(directory);
    const { sandbox } = bare;
    const names = ["left", "added", "owned", "closed", "nested", "replaced", "hidden", "late"];
    const wanted = names.map((name) => ({ path: `/w/${name}`, mode: 0o755, owner: root }));
    const made = await makeDirectories(sandbox, wanted);
    expect(made).toEqual(["/w", ...names.map((name) => `/w/${name}`)]);
    expect(await makeDirectories(sandbox, wanted)).toEqual([]);
    const empty = await emptyDirectories(sandbox, made);
    expect(empty.map(({ path }) => path)).toEqual(names.map((name) => `/w/${name}`));
    await timesTellApart(performance.now(), undefined);
    const { exitCode } = await sandbox.exec(["/bin/sh", "-ec", TOUCHES]);
    expect(exitCode).toBe(0);
    const seen = await stillEmpty(sandbox, empty);
    expect(seen.map(({ path }) => path)).toEqual(["/w/left", "/w/late"]);
    await sandbox.exec(["touch", "/w/late/file"]);
    const stopped = await stopSandbox(sandbox);
    const found = await untouched(stopped, empty, undefined);
    // The engine does not say whose a directory is, nor what is in it: the runner is asked first.
    expect(found.map(({ path }) => path)).toEqual(["/w/left", "/w/owned", "/w/hidden"]);
    expect(await untouched(stopped, seen, undefined)).toEqual([empty[0]]);
  });

  sandboxTest("get their rights, whatever was there before", async ({ directory }) => {
    await using bare = await openBare(directory);
    const { sandbox } = bare;
    const before =
      "mkdir -p /there /elsewhere; chown nobody /there; chmod 2777 /there; ln -s /elsewhere /link";
    await sandbox.exec(["/bin/sh", "-ec", before]);
    const nobody = { uid: 65534, gid: 65534 };
    const wanted = [
      { path: "/there", mode: 0o755, owner: root },
      { path: "/there/closed", mode: 0o700, owner: root },
      { path: "/there/other", mode: 0o750, owner: nobody },
    ];
    await makeExactly(sandbox, wanted.slice(0, 2));
    await makeExactly(sandbox, wanted);
    for (const one of wanted)
      expect({ ...one, stands: await standAs(sandbox, [one]) }).toMatchObject({ stands: true });
    await makeDirectories(sandbox, [{ path: "/link/new/deep", mode: 0o700, owner: root }]);
    expect(await standAs(sandbox, [{ path: "/elsewhere/new", mode: 0o755, owner: root }])).toBe(true);
    expect(await standAs(sandbox, [{ path: "/elsewhere/new/deep", mode: 0o700, owner: root }])).toBe(true);
    expect(await standAs(sandbox, [{ path: "/link", mode: 0o755, owner: root }])).toBe(false);
  });

  sandboxTest(
    "take the place of links that lead nowhere, and leave what exists alone",
    async ({ directory }) => {
      await using bare = await openBare(directory);
      const { sandbox } = bare;
      const before =
        "mkdir -m 700 /there; ln -s /nowhere /link; umask 0; mkdir -m 2755 /group; chgrp nogroup /group";
      await sandbox.exec(["/bin/sh", "-ec", before]);
      for (const path of ["/there/new", "/link", "/group/below"]) {
        const wanted = [{ path, mode: 0o755, owner: root }];
        expect(await makeDirectories(sandbox, wanted)).toEqual([path]);
        expect({ path, stands: await standAs(sandbox, wanted) }).toEqual({ path, stands: true });
      }
      expect(await standAs(sandbox, [{ path: "/there", mode: 0o700, owner: root }])).toBe(true);
    },
  );

  sandboxTest("are removed with the tests, and what a link leads to is not", async ({ directory }) => {
    await using bare = await openBare(directory);
    const { sandbox } = bare;
    const left = async () => (await sandbox.exec(["/bin/sh", "-c", "ls -A /kept /logs /tests 2>&1"])).stdout;
    const linked =
      "mkdir -p /kept/verifier; touch /kept/verifier/file /kept/file; ln -s /kept /logs; ln -s /kept /tests";
    await sandbox.exec(["/bin/sh", "-ec", linked]);
    await removeTests(sandbox);
    expect(await left()).toMatch(/^ls: .*'\/logs'.*\nls: .*'\/tests'.*\n\/kept:\nfile\nverifier\n$/);
    await sandbox.exec(["/bin/sh", "-ec", "touch /logs; mkdir -p /tests/deep/er"]);
    await removeTests(sandbox);
    await sandbox.exec(["/bin/sh", "-ec", "mkdir -p /logs/verifier/deep /logs/agent"]);
    await removeTests(sandbox);
    expect(await left()).toMatch(/^ls: .*'\/tests'.*\n\/kept:\nfile\nverifier\n\n\/logs:\nagent\n$/);
  });
});
