import { describe, expect, it } from "vitest";
// @ts-expect-error -- a plain script without types
import { renderSvg } from "../../../scripts/record/svg.js";
import { Screen } from "../../support/screen.js";

async function draw(text: string, hide: RegExp[] = []): Promise<string> {
  const screen = new Screen({ rows: 5, cols: 40 });
  await screen.write(text.replaceAll("\n", "\r\n"));
  return renderSvg(screen.terminal, { title: "a <b>", hide });
}

const texts = (svg: string) =>
  [...svg.matchAll(/<text x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</g)].map(([, , , text]) => text);

describe("the picture of a screen", () => {
  it("has each piece of a row at its column, in its colour and weight", async () => {
    const svg = await draw("plain \x1b[1;31mred & bold\x1b[0m\n  \x1b[2mdim\x1b[0m 日本 x");
    expect(texts(svg).slice(1)).toEqual(["plain", "red &amp; bold", "dim", "日本 x"]);
    expect(svg).toMatch(/<text x="66\.4" y="44" textLength="84" [^>]*fill="#e0606c" font-weight="bold">red/);
    expect(svg).toMatch(/<text x="32\.8" y="62" [^>]*opacity="0\.6">dim/);
    expect(svg).toMatch(/textLength="50\.4"[^>]*>日本 x/);
    expect(svg).toContain('aria-label="a &lt;b&gt;"');
  });

  it("leaves blank what is different each time, and rows that are empty at the end", async () => {
    const svg = await draw("exit 0 · 1.2 s\n\nlast", [/ · [\d.]+ m?s$/g]);
    expect(texts(svg).slice(1)).toEqual(["exit 0", "last"]);
    expect(svg).toContain('height="100"');
  });
});
