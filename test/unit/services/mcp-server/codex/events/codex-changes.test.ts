import { expect, it } from "vitest";
import { codexChanges } from "../../../../../../src/services/mcp-server/codex/events/codex-changes.js";

it("describes the changes of a patch by absolute path", () => {
  const patch = `*** Begin Patch
*** Add File: new.txt
+one
+two
*** Delete File: old.txt
*** Update File: sub/a.txt
*** Move to: sub/b.txt
@@ function f
 same
-before
+after
@@
+end
*** End Patch`;
  const changes = [
    { path: "new.txt", kind: "add" as const },
    { path: "/work/old.txt", kind: "delete" as const },
    { path: "sub/a.txt", kind: "update" as const },
  ];
  expect(codexChanges({ changes, patch }, "/work")).toEqual({
    "/work/new.txt": { type: "add", content: "one\ntwo\n" },
    "/work/old.txt": { type: "delete", content: "" },
    "/work/sub/a.txt": {
      type: "update",
      unified_diff: "@@ function f\n same\n-before\n+after\n@@\n+end\n",
      move_path: "/work/sub/b.txt",
    },
  });
});

it("describes what it knows of a patch that it cannot read", () => {
  const changes = [{ path: "a", kind: "update" as const }];
  expect(codexChanges({ changes, patch: "--- a\n+++ a\n" }, "/work")).toEqual({
    "/work/a": { type: "update", unified_diff: "", move_path: null },
  });
});
