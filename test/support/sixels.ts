/** What a terminal shows of sixels: pixels with four bytes each, and how many colours were defined. Throws for what it would not understand. */
export function readSixels(text: string): {
  width: number;
  height: number;
  pixels: Uint8Array;
  colours: number;
} {
  if (!text.startsWith("\x1bP0;1;0q") || !text.endsWith("\x1b\\")) throw new Error("no sixels");
  const [, size, body] = /^"1;1;(\d+;\d+)(.*)$/.exec(text.slice(8, -2)) ?? [];
  if (size === undefined || body === undefined) throw new Error("no sixels");
  const [width = 0, height = 0] = size.split(";").map(Number);
  const pixels = new Uint8Array(width * height * 4);
  const registers = new Map<number, number[]>();
  let [x, top, colour] = [0, 0, -1];
  const token = /#(\d+);2;(\d+);(\d+);(\d+)|#(\d+)|!(\d+)([?-~])|([?-~])|([$])|(-)/gy;
  for (let at = 0; at < body.length; at = token.lastIndex) {
    token.lastIndex = at;
    const [whole, ...parts] = token.exec(body) ?? [];
    if (whole === undefined) throw new Error(`not understood: ${body.slice(at, at + 20)}`);
    const [defined, red, green, blue, chosen, count = "1", repeated, single, back, down] = parts;
    const sixel = repeated ?? single;
    if (defined !== undefined)
      registers.set(
        Number(defined),
        [red, green, blue].map((part) => (Number(part) * 255) / 100),
      );
    else if (chosen !== undefined) colour = Number(chosen);
    else if (back !== undefined) x = 0;
    else if (down !== undefined) [x, top] = [0, top + 6];
    for (let times = 0; sixel !== undefined && times < Number(count); times++, x++) {
      const bits = sixel.charCodeAt(0) - 63;
      for (let row = 0; row < 6; row++) {
        if ((bits & (1 << row)) === 0) continue;
        const rgb = registers.get(colour);
        if (rgb === undefined || x >= width || top + row >= height) throw new Error("outside of the picture");
        pixels.set([...rgb.map(Math.round), 255], ((top + row) * width + x) * 4);
      }
    }
  }
  return { width, height, pixels, colours: registers.size };
}
