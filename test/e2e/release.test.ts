import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

function release(argv: string[]) {
  const env = { GITHUB_ACTIONS: undefined, GITLAB_CI: undefined };
  return execa(process.execPath, ["scripts/release.mjs", ...argv], { cwd: root, env, reject: false });
}

// What is left out needs the npm registry, or is done by other tests: package.test.ts installs the archive, and .ci/run runs the demo.
it("npm run release checks this checkout and packs it, publishes nothing, and says what would", async () => {
  const skipped = ["build", "install", "demo", "images", "publish"];
  const { exitCode, stdout, stderr } = await release(["--json", "--skip", skipped.join()]);
  expect(exitCode, stderr).toBe(0);
  const lines = stdout.split("\n").map((line) => JSON.parse(line));
  const of = (type: string) => lines.filter((line) => line.type === type).map(({ step }) => step);
  expect(of("step.ended")).toEqual(["version", "changelog", "settings", "api", "licences", "pack"]);
  expect(of("step.skipped")).toEqual(skipped);
  const { version, obstacles } = lines.find(({ step }) => step === "version");
  expect(obstacles).toBeInstanceOf(Array);
  expect(lines.find(({ step }) => step === "licences").packages).toBeGreaterThan(50);
  expect(lines.find(({ step }) => step === "pack").archive).toBe(`${root}.release/brigbox-${version}.tgz`);
  const { published, commands } = lines.at(-1);
  expect(published).toBe(false);
  const image = `ghcr.io/brig-sandbox/base:${version}`;
  expect(commands).toEqual(
    expect.arrayContaining([
      `docker build --platform linux/arm64 --tag ${image}-arm64 - <.release/base-arm64.tar`,
      `docker push ${image}-arm64`,
      `docker manifest create --amend ${image} ${image}-amd64 ${image}-arm64`,
      `npm publish ./.release/brigbox-${version}.tgz`,
    ]),
  );
  expect(stderr).toMatch(/^release: packing: done in \d/m);
});

it.each([
  ["an unknown step", ["--skip", "tests"], "there is no step tests"],
  ["a release with steps left out", ["--publish", "--skip", "demo"], "--publish leaves no step out"],
  ["a release from where no provenance can be had", ["--publish"], "GitHub Actions and GitLab CI only"],
  ["a flag that there is not", ["--force"], "--force"],
])("npm run release refuses %s, before it does anything", async (_, argv, message) => {
  const { exitCode, stdout, stderr } = await release(argv);
  expect([exitCode, stdout]).toEqual([2, ""]);
  expect(stderr).toContain(message);
  expect(stderr).toContain("hint: the steps are version, changelog");
});
