import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Browser } from "playwright-core";
import { hasBrowser, openBrowser } from "../../support/view/browser.js";
import { mixedRun, writeRun } from "../../support/view/run-fixture.js";
import { type Bench, type BenchContext, compare, quantity, type RatioRow } from "../bench.js";
import { ownFolder } from "../own-folder.js";
import { spawnOnHost } from "../rivals.js";
import { repeat, takeTurns, timed } from "../sampling.js";

const ATTEMPTS = 20_000;
const MOST_MS = 2000;
const MOST_MB = 300;
const brig = fileURLToPath(new URL("./cli/main.js", import.meta.resolve("brigbox")));

/**
 * Writing the page of a large run with everything about its attempts, beside a program that only reads their files. Opening the page
 * from disk, until its table is there, and what the browser's process of the page takes then.
 */
export const viewPage: Bench = {
  name: "view-page",
  async run({ isQuick, progress, signal }) {
    const written = await writePages({ isQuick, progress, signal });
    if (!hasBrowser) {
      progress("view-page: there is no /usr/bin/chromium, so the page is not opened");
      return [written];
    }
    await using folder = await ownFolder();
    progress("view-page: writing the page to open");
    const page = join(folder.path, "page.html");
    await writeRun(join(folder.path, "run"), mixedRun(ATTEMPTS, { files: false }));
    await spawnOnHost(process.execPath, [brig, "view", join(folder.path, "run"), "-o", page]);
    await using browser = await openBrowser();
    progress("view-page: opening it");
    const opened: { ms: number; megabytes: number }[] = [];
    await repeat(isQuick ? 3 : 7, async () => opened.push(await openPage(browser, page)));
    const name = `brig view, ${ATTEMPTS} attempts`;
    return [
      written,
      quantity(
        { name, values: opened.map(({ ms }) => ms) },
        { title: "opening the page of a run", unit: "ms", target: { kind: "at-most", value: MOST_MS } },
      ),
      quantity(
        { name, values: opened.map(({ megabytes }) => megabytes) },
        {
          title: "memory of the page of a run",
          unit: "MB",
          judged: "max",
          target: { kind: "at-most", value: MOST_MB },
        },
      ),
    ];
  },
};

async function writePages({
  isQuick,
  progress,
  signal,
}: Pick<BenchContext, "isQuick" | "progress" | "signal">): Promise<RatioRow> {
  await using folder = await ownFolder();
  progress("view-page: writing a run with details");
  const run = join(folder.path, "run");
  await writeRun(run, mixedRun(ATTEMPTS));
  const page = join(folder.path, "page.html");
  const view = [brig, "view", run, "-o", page];
  const readAll = ["-c", 'find "$0" -type f -exec cat {} + > /dev/null', run];
  const { ours, rival } = await takeTurns(
    {
      rival: {
        name: "find and cat",
        batch: 1,
        sample: () => timed(() => spawnOnHost("sh", readAll)),
      },
      ours: {
        name: `brig view -o, ${ATTEMPTS} attempts`,
        batch: 1,
        sample: () => timed(() => spawnOnHost(process.execPath, view)),
      },
    },
    {
      rounds: isQuick ? 1 : 5,
      signal,
      onRound: (round) => progress(`view-page: writing the page, round ${round}`),
    },
  );
  return compare(ours, rival, {
    title: "writing the page of a run with details",
    unit: "ms",
    direction: "ours / rival",
  });
}

async function openPage(browser: Browser, file: string): Promise<{ ms: number; megabytes: number }> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  try {
    const page = await context.newPage();
    const beganAt = performance.now();
    await page.goto(pathToFileURL(file).href);
    await page.getByRole("status").filter({ hasText: "20,000 of 20,000 attempts shown" }).waitFor();
    const ms = performance.now() - beganAt;
    return { ms, megabytes: await largestRenderer(browser) };
  } finally {
    await context.close();
  }
}

/** The processes of pages, of which only this one has anything in it. Libraries of the browser count, too. */
async function largestRenderer(browser: Browser): Promise<number> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  await session.detach();
  const renderers = processInfo.filter(({ type }) => type === "renderer");
  return Math.max(...(await Promise.all(renderers.map(({ id }) => residentMegabytes(id)))));
}

async function residentMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return (Number(/^VmRSS:\s+([0-9]+) kB$/m.exec(status)?.[1]) * 1024) / 1e6;
}
