import { describe, expect, it } from "vitest";
import { attackPage } from "../../../../src/cli/attack/attack-page.js";
import { attackText } from "../../../../src/cli/attack/attack-text.js";
import type { AttackedPolicy } from "../../../../src/sandbox/attack/attack.js";

const hostile = `found <script>alert("1")</script> & 'x' \x1b[2J`;
const attacked: AttackedPolicy = {
  policy: "my <b>policy</b>",
  image: "brig/base",
  runtime: null,
  kernel: "shared",
  user: { uid: 1000, gid: 1000 },
  egress: null,
  judgements: [
    {
      id: "A2",
      attempt: "device-nodes",
      title: "/dev has no device of the machine",
      verdict: "failed",
      outcome: hostile,
      expected: ["nothing"],
      control: "found /dev/kmsg",
      reason: "a command may reach the machine's hardware and disks",
      advice: null,
    },
  ],
};
const about = { version: "1.0.0", engine: "docker 28", kernel: "6.12", hasControl: true, at: new Date(0) };

describe("the page", () => {
  const page = attackPage([attacked], about);

  it("shows what a container answered as text, and no code can run in it", () => {
    expect(page).toContain(
      "found &lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;x&#39; \uFFFD[2J",
    );
    expect(page).toContain("my &lt;b&gt;policy&lt;/b&gt;");
    expect(page).not.toContain("<script");
    expect(page).toContain("default-src 'none'; style-src 'sha256-");
  });

  it("needs nothing from elsewhere, and says what did not hold and what that means", () => {
    expect(page).not.toMatch(/\b(?:src|href)=/);
    expect(page).toContain('class="verdict failed">did not hold<');
    expect(page).toContain("a command may reach the machine&#39;s hardware and disks");
    expect(page).toContain("1970-01-01T00:00:00.000Z");
  });
});

describe("the text", () => {
  const shown = { ...about, showsAll: true, usesColour: false, columns: undefined };

  it("passes no control sequence of a container on, and shows the control", () => {
    const text = attackText([attacked], shown);
    expect(text).not.toContain("\x1b");
    expect(text).toContain("A2   /dev has no device of the machine: did not hold (found <script>");
    expect(text).toContain("without protection: found /dev/kmsg");
    expect(text).toContain("my <b>policy</b>: 1 did not hold");
  });

  it("fits into a terminal", () => {
    const lines = attackText([attacked], { ...shown, columns: 60 }).split("\n");
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(60);
    expect(lines.length).toBeGreaterThan(10);
  });

  it("says where no control was made", () => {
    expect(attackText([attacked], { ...shown, hasControl: false })).toContain("--no-control");
  });
});
