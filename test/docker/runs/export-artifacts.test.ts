import { expect } from "vitest";
import { exportArtifacts } from "../../../src/batch/runs/artifacts/export-artifacts.js";
import { testEngine } from "../../support/engine.js";
import { openTestSandbox, sandboxTest, temporaryDirectory } from "../../support/sandbox.js";

sandboxTest(
  "what the task asks for leaves the container, whatever else an agent has left there",
  async () => {
    await using folder = await temporaryDirectory();
    await using opened = await openTestSandbox({ mode: "danger-full-access" });
    const { sandbox } = opened;
    const script =
      "mkdir -p /logs/artifacts /app/out; touch /logs/artifacts/{1..50}; echo 42 > /app/out/answer";
    expect((await sandbox.exec(["bash", "-c", script])).exitCode).toBe(0);
    const engine = await testEngine();
    const { entries, findings } = await exportArtifacts(
      { engine, containerId: sandbox.containerId },
      {
        artifacts: [{ source: "out", destination: null, exclude: [] }],
        changes: [],
        empty: [],
        cwd: "/app",
        folder: folder.path,
        limits: { fileBytes: 1000, totalBytes: 1000, entries: 10 },
      },
    );
    const paths = entries.map(({ path }) => path);
    expect(paths).toHaveLength(10);
    expect(paths).toEqual(expect.arrayContaining(["/app/out/", "/app/out/answer"]));
    expect(findings).toEqual([
      '"/logs/artifacts" is not taken whole: all artifacts together may have 10 files',
    ]);
  },
);
