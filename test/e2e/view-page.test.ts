import { mkdir, readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packageRoot } from "../../src/package-root.js";
import { brigHere } from "../support/cli-here.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";
import { withReason } from "../support/skip-reasons.js";
import { testProgram } from "../support/test-program.js";
import { openBrowser } from "../support/view/browser.js";
import {
  attemptResult,
  exampleFileNames,
  exampleFiles,
  mixedRun,
  writeRun,
} from "../support/view/run-fixture.js";
import { accessibilityFaults, openFile, shownTasks, writePage } from "../support/view/view-page.js";

const chromium = await testProgram("chromium");

const attemptFragment = "#view=attempt&of=example%2Fparsing-00000&attempt=1";

const title = withReason("the page of a run, opened from disk in Chromium", chromium.missing);
describe.skipIf(chromium.missing !== null)(title, () => {
  let browser: Browser;
  let folder: TemporaryDirectory;
  let file: string;
  let comparison: string;

  beforeAll(async () => {
    browser = await openBrowser();
    folder = await temporaryDirectory();
    const runs = ["run-a", "run-b"].map((name) => join(folder.path, name));
    for (const [seed, run] of runs.entries()) await writeRun(run, mixedRun(60, { seed }));
    file = join(folder.path, "page.html");
    comparison = join(folder.path, "comparison.html");
    await writePage(runs.slice(0, 1), file);
    await writePage(runs, comparison);
  });

  afterAll(async () => {
    await browser?.close();
    await folder?.[Symbol.asyncDispose]();
  });

  it("shows the run in numbers and its attempts in a table", async () => {
    await using opened = await openFile(browser, file);
    const { page, misdeeds } = opened;
    await expect(page.title()).resolves.toBe("Attempts of run-a · brig view");
    await expect
      .poll(() => page.locator(".figures").innerText())
      .toMatch(
        /Attempts\s+60\s+Mean reward\s+0\.\d+ \(95 % interval 0\.\d+–0\.\d+[^)]*\)\s+pass@1\s+0\.\d+ \(95 %/,
      );
    await expect.poll(() => page.getByRole("status").innerText()).toBe("60 of 60 attempts shown");
    expect((await shownTasks(page)).slice(0, 3)).toEqual([
      "example/parsing-00000 #1",
      "example/parsing-00000 #2",
      "example/networking-00001 #1",
    ]);
    expect(misdeeds).toEqual([]);
  });

  it("filters and sorts, and keeps both in its address", async () => {
    await using opened = await openFile(browser, file);
    const { page } = opened;
    await page.getByRole("combobox", { name: "Tag" }).selectOption("sorting");
    await page.getByRole("combobox", { name: "Reward" }).selectOption("full");
    await page.getByRole("searchbox").fill("SORTING-0");
    await page.getByRole("button", { name: "Tokens" }).click();
    await page.locator("th[aria-sort=descending]", { hasText: "Tokens" }).waitFor();
    const tasks = await shownTasks(page);
    expect(tasks.length).toBeGreaterThan(2);
    expect(tasks.every((task) => task.startsWith("example/sorting-0"))).toBe(true);
    const tokens = (await page.locator("table.attempts tbody td:nth-child(6)").allInnerTexts()).map((text) =>
      Number(text.replaceAll(",", "")),
    );
    expect(tokens).toEqual(tokens.toSorted((a, b) => b - a));
    await expect
      .poll(() => page.getByRole("status").innerText())
      .toBe(`${tasks.length} of 60 attempts shown`);

    await using again = await openFile(browser, file, { fragment: new URL(page.url()).hash });
    await expect.poll(() => shownTasks(again.page)).toEqual(tasks);
    await again.page.getByRole("button", { name: "Clear" }).click();
    await expect.poll(() => again.page.getByRole("status").innerText()).toBe("60 of 60 attempts shown");
  });

  it("is used with the keyboard alone, from the table to a trajectory and back", async () => {
    await using opened = await openFile(browser, file);
    const { page } = opened;
    const focused = () => page.evaluate<string>("document.activeElement?.textContent ?? ''");
    await page.keyboard.press("Tab");
    await expect.poll(focused).toBe("Skip to the content");
    await page.keyboard.press("Enter");
    for (let presses = 0; presses < 30 && !(await focused()).startsWith("example/"); presses++)
      await page.keyboard.press("Tab");
    await expect.poll(focused).toBe("example/parsing-00000 #1");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await expect.poll(focused).toBe("example/networking-00001 #1");
    await page.keyboard.press("End");
    await expect.poll(focused).toBe("example/build-00029 #2");
    await page.keyboard.press("PageUp");
    await expect.poll(focused).toMatch(/^example\/(?!build-00029)/);
    await page.keyboard.press("Home");
    await expect.poll(focused).toBe("example/parsing-00000 #1");
    await page.keyboard.press("Enter");
    await page.getByRole("tab", { name: "Overview" }).waitFor();
    await expect.poll(focused).toBe("Attempt");
    for (let presses = 0; presses < 10 && (await focused()) !== "Overview"; presses++)
      await page.keyboard.press("Tab");
    await page.keyboard.press("ArrowRight");
    await expect.poll(focused).toBe("Trajectory");
    await expect.poll(() => page.getByRole("tabpanel").innerText()).toContain("cat sort.py");
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => page.getByRole("tabpanel").innerText()).toContain("+    return list(open(path))");
    await page.goBack();
    await expect.poll(() => page.getByRole("status").innerText()).toBe("60 of 60 attempts shown");
  });

  it("links what a cause in a chart stands for", async () => {
    await using opened = await openFile(browser, file, { fragment: "#view=charts" });
    const { page, misdeeds } = opened;
    const chart = page.locator("figure", { hasText: "Causes" });
    await chart.locator("summary").click();
    const count = await chart.locator("tr", { hasText: "limit reached" }).locator("td").innerText();
    await chart.getByRole("link", { name: "limit reached" }).click();
    await expect.poll(() => page.getByRole("status").innerText()).toBe(`${count} of 60 attempts shown`);
    expect(misdeeds).toEqual([]);
  });

  it("compares two runs, with the tasks first that only one of them solves", async () => {
    await using opened = await openFile(browser, comparison, { fragment: "#view=compare" });
    const { page, misdeeds } = opened;
    await expect
      .poll(() => page.getByRole("status").innerText())
      .toMatch(/^\d+ of 30 tasks flipped: \d+ are solved/);
    const changes = await page.locator("table.compare tbody td:nth-child(2)").allInnerTexts();
    const isFlipped = changes.map((change) => change.startsWith("solved by"));
    expect(isFlipped).toContain(true);
    expect(isFlipped).toEqual(isFlipped.toSorted((a, b) => Number(b) - Number(a)));
    await page
      .getByRole("link", { name: /attempts of run B/ })
      .first()
      .click();
    await expect(page.getByLabel("Run").inputValue()).resolves.toBe("1");
    await expect.poll(() => page.getByRole("status").innerText()).toBe("2 of 60 attempts shown");
    expect(misdeeds).toEqual([]);
  });

  it("prints every tab of an attempt", async () => {
    await using opened = await openFile(browser, file, { fragment: attemptFragment });
    const { page } = opened;
    await page.getByRole("tab", { name: "Overview" }).waitFor();
    await page.emulateMedia({ media: "print" });
    const text = await page.locator("main").innerText();
    for (const part of ["cat sort.py", "+    return list(open(path))", "2 passed", '"readOnlyRoot": true'])
      expect(text).toContain(part);
    await expect(page.getByRole("tablist").isVisible()).resolves.toBe(false);
  });

  describe.each(["light", "dark"] as const)("in the %s theme", (colorScheme) => {
    it.each([
      ["the table", "", "table.attempts"],
      ["the charts", "#view=charts", ".charts"],
      ["the comparison", "#view=compare", "table.compare"],
      ...["overview", "trajectory", "diff", "tests", "output", "proof"].map((tab) => [
        `the tab ${tab}`,
        `${attemptFragment}&tab=${tab}`,
        "[role=tabpanel]:not([hidden])",
      ]),
    ])("axe-core finds nothing wrong with %s", async (_title, fragment = "", content = "") => {
      await using opened = await openFile(browser, comparison, { fragment, colorScheme });
      await opened.page.locator(content).waitFor();
      // Numbers that are folded away are looked at too.
      await opened.page.evaluate(
        "document.querySelectorAll('details').forEach((one) => { one.open = true; })",
      );
      await expect(accessibilityFaults(opened.page)).resolves.toEqual([]);
    });

    it("the switch chooses the other one, and is remembered", async () => {
      await using opened = await openFile(browser, file, { colorScheme });
      const { page } = opened;
      const ground = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
      const before = await ground();
      await page.getByLabel("Theme").selectOption(colorScheme === "dark" ? "light" : "dark");
      // The page is drawn again after the event, so not at once.
      await expect.poll(ground).not.toBe(before);
      const after = await ground();
      await page.reload();
      await page.locator("table.attempts").waitFor();
      await expect.poll(ground).toBe(after);
    });
  });

  it.each([
    ["view-attempts.png", "", "table.attempts tbody tr"],
    ["view-trajectory.png", `${attemptFragment}&tab=trajectory`, ".step"],
  ])("%s of the documentation is made of it", async (name, fragment, content) => {
    await using opened = await openFile(browser, file, { fragment });
    await opened.page.setViewportSize({ width: 1100, height: 640 });
    await opened.page.locator(content).first().waitFor();
    const picture = await opened.page.screenshot({ animations: "disabled" });
    const documented = join(packageRoot, "docs", name);
    // Fonts differ between machines, so pictures are written only when asked for, and not compared.
    if (process.env.BRIG_TEST_PICTURES === "write") await writeFile(documented, picture);
    const sizeOf = (png: Buffer) => [png.readUInt32BE(16), png.readUInt32BE(20)];
    expect(sizeOf(picture)).toEqual([1100, 640]);
    expect(sizeOf(await readFile(documented))).toEqual([1100, 640]);
  });

  it("axe-core sees the page: it does find what is wrong", async () => {
    await using opened = await openFile(browser, file);
    await opened.page.evaluate("document.querySelector('main').append(document.createElement('select'))");
    await expect(accessibilityFaults(opened.page)).resolves.toEqual([
      expect.stringMatching(/^select-name: <select>/),
    ]);
  });

  it("keeps few of 20,000 attempts in the document, and reaches the last", async () => {
    await using large = await temporaryDirectory();
    await writeRun(join(large.path, "run"), mixedRun(20_000, { files: false }));
    const out = join(large.path, "page.html");
    await writePage([join(large.path, "run")], out);
    await using opened = await openFile(browser, out);
    const { page, misdeeds } = opened;
    await expect.poll(() => page.getByRole("status").innerText()).toBe("20,000 of 20,000 attempts shown");
    expect((await shownTasks(page)).length).toBeLessThan(100);
    await page.locator("table.attempts tbody a").first().focus();
    await page.keyboard.press("End");
    await page.getByRole("link", { name: "example/build-09999 #2" }).click();
    await expect.poll(() => page.getByRole("tabpanel").innerText()).toContain("test_reads_the_file");
    expect(misdeeds).toEqual([]);
  });

  describe("with hostile content", () => {
    const attacks = [
      "</script><script>window.owned = 1</script>",
      "<!--<script>window.owned = 1",
      "<img src=x onerror='window.owned = 1'>",
      "<svg onload='window.owned = 1'>",
      "<iframe srcdoc='<script>parent.owned = 1</script>'></iframe>",
      "<a href='javascript:window.owned = 1'>click</a>",
      "javascript:window.owned=1",
      "{{constructor.constructor('window.owned = 1')()}}",
      '"><base href="https://example.com/">',
      "\u001b]8;;https://example.com\u0007link\u001b]8;;\u0007\u001b[2J",
      "\u202egnp.exe\u2066\u200b",
      "__proto__",
      "&lt;script&gt;",
    ];
    const all = attacks.join("\n");

    it("runs nothing of it, asks nobody, and hides nothing", async () => {
      await using hostile = await temporaryDirectory();
      const run = join(hostile.path, "<b>run<b>");
      const [step] = attemptResult({ task: "t" }).steps;
      const attempts = attacks.map((attack, at) => {
        const task = attack.replaceAll("/", "∕").replaceAll("\u0000", "");
        const result = attemptResult({
          task,
          reward: 0,
          agent: { name: attack, model: attack },
          imageId: attack,
          rewards: { [attack]: 1 },
          steps: [
            {
              ...step!,
              name: attack,
              agentMessage: all,
              verification: {
                ...step!.verification!,
                message: all,
                tests: [{ name: attack, status: "failed" }],
                findings: [attack],
              },
            },
          ],
          files: { ...exampleFileNames, agentOutput: "agent.txt" },
        });
        const trajectory = {
          steps: [
            {
              source: "agent",
              message: all,
              reasoning_content: all,
              model_name: attack,
              tool_calls: [{ tool_call_id: "a", function_name: attack, arguments: { [attack]: all } }],
              observation: {
                results: [{ source_call_id: "a", content: all, extra: { [attack]: attack } }],
              },
            },
          ],
        };
        const files = {
          ...exampleFiles("t", { output: all }),
          "agent/trajectory.json": JSON.stringify(trajectory),
          "changes.diff": `+${all}`,
          "proof.json": all,
          "agent.txt": all,
        };
        return { result, files, at };
      });
      await writeRun(run, {
        settings: { [attacks[0]!]: all },
        tasks: attempts.map(({ result }) => ({ name: result.task, tags: attacks })),
        attempts,
      });
      const out = join(hostile.path, "page.html");
      await writePage([run], out);
      await using opened = await openFile(browser, out);
      const { page, misdeeds } = opened;
      await checkInert(page);
      for (let at = 0; at < attacks.length; at++) {
        await page.locator("table.attempts tbody a").nth(at).click();
        for (const tab of [
          "Trajectory",
          "Changes",
          "Test output",
          "Agent output",
          "Policy proof",
          "Overview",
        ])
          await page.getByRole("tab", { name: tab, exact: true }).click();
        await checkInert(page);
        await page.getByRole("link", { name: "All attempts" }).click();
      }
      await page.getByRole("link", { name: "Charts" }).click();
      await checkInert(page);
      expect(misdeeds).toEqual([]);
      await expect(page.evaluate("document.scripts.length")).resolves.toBe(
        (await readFile(out, "utf8")).match(/<script[ >]/g)?.filter(Boolean).length,
      );
    });

    /** Nothing was made of the texts but text, and nothing in it changes how it is read. */
    async function checkInert(page: Page): Promise<void> {
      const isOwned = await page.evaluate("'owned' in window");
      const active = await page.locator("#page :is(script, img, iframe, base, object, embed, b)").count();
      const links = await page.locator("a:not([href^='#'])").count();
      const text = `${await page.locator("body").innerText()}${await page.title()}`;
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
      const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2066-\u2069]/.exec(text);
      expect({ isOwned, active, links, hidden }).toEqual({
        isOwned: false,
        active: 0,
        links: 0,
        hidden: null,
      });
    }

    it("cuts a line of 100 MB, and says so", async () => {
      await using hostile = await temporaryDirectory();
      const run = join(hostile.path, "run");
      const result = attemptResult({ task: "t", files: exampleFileNames });
      await writeRun(run, { attempts: [{ result, files: exampleFiles("t") }] });
      await truncate(join(run, "attempts/t/1/verifier/test-output.txt"), 100 * 1024 * 1024);
      await truncate(join(run, "attempts/t/1/agent/trajectory.json"), 100 * 1024 * 1024);
      const out = join(hostile.path, "page.html");
      await writePage([run], out);
      await using opened = await openFile(browser, out, {
        fragment: "#view=attempt&of=t&attempt=1&tab=tests",
      });
      const panel = opened.page.getByRole("tabpanel");
      await expect.poll(() => panel.innerText()).toMatch(/2 passed[\s\S]*100 MiB are left out here/);
      await opened.page.getByRole("tab", { name: "Trajectory" }).click();
      await expect.poll(() => panel.innerText()).toBe("The trajectory is longer than 16 MiB.");
    });
  });

  it("leaves out details beyond the size that is allowed, failed attempts last, and says so", async () => {
    await using large = await temporaryDirectory();
    const noise = (seed: number) => {
      let state = seed;
      const next = () => {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
        return state.toString(36);
      };
      return Array.from({ length: 9000 }, next).join(" ");
    };
    const attempts = Array.from({ length: 60 }, (_, at) => {
      const task = `task-${at}`;
      const result = attemptResult({ task, reward: at === 59 ? 0 : 1, files: exampleFileNames });
      return { result, files: exampleFiles(task, { output: noise(at + 1) }) };
    });
    const run = join(large.path, "run");
    await writeRun(run, { attempts });
    const out = join(large.path, "page.html");
    const { stdout, exitCode } = await brigHere(["view", run, "-o", out, "--max-size", "1", "--json"]);
    expect(exitCode).toBe(0);
    const { file: written, attempts: count, leftOut } = JSON.parse(stdout);
    expect([written, count]).toEqual([out, 60]);
    expect(leftOut).toBeGreaterThan(10);
    expect((await readFile(out)).length).toBeLessThan(2.5 * 1024 * 1024);
    await using opened = await openFile(browser, out, { fragment: "#view=attempt&of=task-59&attempt=1" });
    await expect.poll(() => opened.page.getByRole("tabpanel").innerText()).toContain("test_keeps_the_order");
    await using missing = await openFile(browser, out, { fragment: "#view=attempt&of=task-58&attempt=1" });
    await expect
      .poll(() => missing.page.locator(".notice").innerText())
      .toContain("would have become too large");
  });

  it.runIf(process.env.BRIG_UPDATE_SCREENSHOTS !== undefined)(
    "draws the pictures of the documentation [on request: BRIG_UPDATE_SCREENSHOTS=1]",
    async () => {
      const docs = fileURLToPath(new URL("../../docs", import.meta.url));
      for (const [name, fragment, content] of [
        ["view-attempts", "", "table.attempts"],
        ["view-trajectory", `${attemptFragment}&tab=trajectory`, ".step"],
        ["view-compare", "#view=compare", "table.compare"],
      ] as const) {
        await using opened = await openFile(browser, comparison, { fragment });
        await opened.page.locator(content).first().waitFor();
        await opened.page.screenshot({ path: join(docs, `${name}.png`) });
      }
    },
  );
});

describe("brig view", () => {
  it.each([
    ["a folder that is no run", ["view", "."], "has neither batch.json nor results.jsonl"],
    ["a folder that does not exist", ["view", "missing"], "has neither batch.json nor results.jsonl"],
    ["both a file and a port", ["view", ".", "-o", "x.html", "--port", "0"], "--port is for serving"],
    ["a size that is none", ["view", ".", "-o", "x.html", "--max-size", "0"], "from 1 to 1024"],
    ["three runs", ["view", "a", "b", "c"], "too many arguments"],
  ])("refuses %s", async (_title, args, message) => {
    await using folder = await temporaryDirectory();
    const { exitCode, stderr } = await brigHere(args, { cwd: folder.path });
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(message)]);
  });

  it("leaves an earlier page as it is if the new one cannot be written", async () => {
    await using folder = await temporaryDirectory();
    await writeRun(join(folder.path, "run"), mixedRun(2));
    await mkdir(join(folder.path, "page.html"));
    await writeFile(join(folder.path, "page.html/kept"), "");
    const { exitCode, stderr } = await brigHere(["view", "run", "-o", "page.html"], { cwd: folder.path });
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining("cannot write")]);
    await expect(readFile(join(folder.path, "page.html/kept"), "utf8")).resolves.toBe("");
  });
});
