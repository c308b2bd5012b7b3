import { chmod, cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished, vi } from "vitest";

const setup = fileURLToPath(new URL("../../../scripts/setup", import.meta.url));

it("the setup takes the locked packages or none: where npm refuses the lock file it installs nothing else", async () => {
  const checkout = await mkdtemp(join(tmpdir(), "brig-test-"));
  onTestFinished(() => rm(checkout, { recursive: true }));
  await cp(setup, join(checkout, "scripts/setup"), { recursive: true });
  await writeFile(join(checkout, "package.json"), '{ "type": "module" }');
  await writeFile(join(checkout, "package-lock.json"), "{}");
  // An npm that refuses a lock file as the real one does.
  const npm = join(checkout, "npm");
  await writeFile(
    npm,
    `#!/bin/sh\necho "$1" >> ${checkout}/calls\necho "Missing: a@1.0.0 from lock file"\nexit 1\n`,
  );
  await chmod(npm, 0o755);
  vi.stubEnv("PATH", `${checkout}${delimiter}${process.env.PATH}`);

  const { installPackages } = await import(join(checkout, "scripts/setup/packages.js"));
  const progress = {
    step: async (_title: string, run: (onLine: () => void) => unknown) => run(() => undefined),
  };
  await expect(installPackages({ progress })).rejects.toThrow("Missing: a@1.0.0 from lock file");
  expect(await readFile(join(checkout, "calls"), "utf8")).toBe("ci\n");
});
