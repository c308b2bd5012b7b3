import { existsSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { describe, expect, it } from "vitest";
import { temporaryDirectory } from "../support/sandbox.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const { homepage } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** The paths of what is published. Needs no compiled code, of which no page is. */
async function packedFiles(): Promise<string[]> {
  await using cache = await temporaryDirectory();
  const options = ["--dry-run", "--json", "--ignore-scripts", "--cache", cache.path];
  const { stdout } = await execa("npm", ["pack", ...options], { cwd: root });
  // Newer versions of npm print an object with the packages by their names.
  const [packed] = Object.values<{ files: { path: string }[] }>(JSON.parse(stdout));
  return packed?.files.map(({ path }) => path) ?? [];
}

const files = await packedFiles();
const pages = files.filter((path) => path.endsWith(".md"));

function linksIn(text: string): string[] {
  const prose = text.replaceAll(/^```[\s\S]*?^```/gm, "");
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
}

/** The anchors of a page, as GitHub makes them of its headings. */
function anchorsIn(text: string): string[] {
  const headings = text.replaceAll(/^```[\s\S]*?^```/gm, "").matchAll(/^#+ (.*)$/gm);
  return [...headings].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

/** Why a reader of this page cannot follow a link of it; null if nothing keeps one from it. */
function problemOf(page: string, link: string, packed: readonly string[]): string | null {
  const ofRepository = new RegExp(`^${homepage}/(?:blob|tree)/main/([^#]+)`).exec(link)?.[1];
  if (ofRepository !== undefined)
    return existsSync(join(root, ofRepository)) ? null : "not in the repository";
  if (/^[a-z]+:/.test(link)) return null;
  const [path = "", anchor] = link.split("#");
  const target = path === "" ? page : posix.join(posix.dirname(page), path);
  if (!packed.some((file) => file === target || file.startsWith(`${target}/`))) return "not in the package";
  const isMissing =
    anchor !== undefined && !anchorsIn(readFileSync(join(root, target), "utf8")).includes(anchor);
  return isMissing ? "no such heading" : null;
}

describe("the pages that are published", () => {
  it("are those that a reader begins with, and all others in docs", () => {
    expect(pages).toEqual(expect.arrayContaining(["README.md", "SECURITY.md", "docs/network.md"]));
    expect(pages.length).toBeGreaterThan(40);
  });

  it.each(pages)("%s has only links that lead somewhere: in the package, or as an address", (page) => {
    const links = linksIn(readFileSync(join(root, page), "utf8"));
    const broken = links.map((link) => ({ link, problem: problemOf(page, link, files) }));
    expect(broken.filter(({ problem }) => problem !== null)).toEqual([]);
  });

  it("would be noticed with a link to what is only in the repository, to nothing, or to no heading", () => {
    const problems = ["../test/README.md", "network.md#no-such", `${homepage}/blob/main/no/such.md`].map(
      (link) => problemOf("docs/ports.md", link, files),
    );
    expect(problems).toEqual(["not in the package", "no such heading", "not in the repository"]);
    expect(problemOf("docs/ports.md", "#ports-of-a-sandbox", files)).toBeNull();
  });
});
